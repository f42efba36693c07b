//go:build !linux

package workers

import (
	"os/exec"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
)

// cgroups does not exist here, because this system has no workers.
type cgroups struct{}

func newCgroups(settings.Worker) (*cgroups, error) { return nil, enclosure.ErrUnavailable }

func (*cgroups) enter(*exec.Cmd, string) (*cgroup, error) { return nil, nil }

type cgroup struct{}

func (*cgroup) close() {}

func (*cgroup) exceeded() bool { return false }

func (*cgroup) end() error { return nil }
