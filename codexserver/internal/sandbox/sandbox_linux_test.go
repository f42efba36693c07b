package sandbox_test

import (
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/command"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

func TestFirst(t *testing.T) {
	for _, tier := range []sandbox.Tier{sandbox.TierThread, sandbox.TierNamespaces} {
		dir := t.TempDir()
		os.Mkdir(dir+"/.git", 0o755)
		s := sandbox.New(sandbox.Options{Tier: tier})
		c, err := s.Confine(protocol.SandboxPolicy{Mode: "workspace-write", ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, script := range []string{"echo hi > in && cat in", "echo x > .git/evil", "echo x > /root/out", "chmod 700 /root", "python3 -c 'import socket; socket.socket()'", "id; cat /proc/self/status | grep -i -e seccomp -e nonew -e cap", "ls -la /proc/self/fd; kill -0 $PPID; mount -t tmpfs x /mnt"} {
			res, err := command.Run(t.Context(), command.Spec{Argv: []string{"bash", "-c", script}, Dir: dir, Env: os.Environ(), Starter: c}, nil)
			t.Logf("%s %q: %d %q %v %v", tier, script, res.ExitCode, res.Aggregated, err, res.Duration)
		}
	}
}
