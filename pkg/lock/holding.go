package lock

import "github.com/pawl-lock/pawl/pkg/fence"

// Holding returns lock and token as one value, as guards take it.
func (h *Held) Holding() fence.Holding {
	return fence.Holding{Lock: h.Lock(), Token: h.Token()}
}
