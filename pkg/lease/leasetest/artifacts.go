package leasetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// A written op is an [Op] as history.json has it.
type written struct {
	Kind       Kind        `json:"kind"`
	Caller     int         `json:"caller"`
	Called     time.Time   `json:"called"`
	Ended      time.Time   `json:"ended"`
	Token      fence.Token `json:"token"`
	AcquiredAt time.Time   `json:"acquired_at"`
	ExpiresAt  time.Time   `json:"expires_at"`
	Error      string      `json:"error,omitempty"`
}

// keep writes a history that nothing explains to a new directory in ARTIFACTS, or
// in that for temporary files: history.json, and history.html, in which porcupine
// shows how far it came. It returns the directory.
func keep(ops []Op, info porcupine.LinearizationInfo) (dir string, err error) {
	all := make([]written, len(ops))
	for i, op := range ops {
		all[i] = written{op.Kind, op.Caller, op.Called, op.Ended, op.Lease.Token, op.Lease.AcquiredAt, op.Lease.ExpiresAt, ""}
		if op.Err != nil {
			all[i].Error = op.Err.Error()
		}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return "", err
	}
	parent := os.Getenv("ARTIFACTS")
	if parent != "" {
		if err := os.MkdirAll(parent, 0o755); err != nil {
			return "", err
		}
	}
	if dir, err = os.MkdirTemp(parent, "history-"); err != nil {
		return "", err
	}
	return dir, errors.Join(
		os.WriteFile(filepath.Join(dir, "history.json"), text, 0o644),
		porcupine.VisualizePath(lock, info, filepath.Join(dir, "history.html")),
	)
}

// unexplained is the error for ops that no order explains.
func unexplained(ops []Op, info porcupine.LinearizationInfo) error {
	err := fmt.Errorf("no order of the %d operations explains what they returned", len(ops))
	dir, failed := keep(ops, info)
	if failed != nil {
		return fmt.Errorf("%w, and they could not be written: %w", err, failed)
	}
	return fmt.Errorf("%w: see history.html and history.json in %s", err, dir)
}
