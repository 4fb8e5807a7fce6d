package localtest

import (
	"context"
	"errors"
	"os"
	"os/exec"

	"github.com/pawl-lock/pawl/localtest/process"
)

const debianTakes = "apt-get takes about half a minute"

// debian returns what installs packages of Debian, where that is possible.
func debian(packages ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		apt, err := exec.LookPath("apt-get")
		if err != nil {
			return err
		}
		if os.Geteuid() != 0 {
			return errors.New("only root can install packages")
		}
		get := func(args ...string) error {
			cmd := exec.Command(apt, append([]string{"-qq", "-o", "DPkg::Lock::Timeout=600"}, args...)...)
			cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
			_, err := process.Run(ctx, cmd)
			return err
		}
		these := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
		if err := get(these...); err == nil {
			return nil
		}
		if err := get("update"); err != nil { // the lists may be too old, or none
			return err
		}
		return get(these...)
	}
}
