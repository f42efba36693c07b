package tool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestSessionStaysInside approves a harmless program for the session, which a patch or a command then
// replaces. The same words start the other program without a question, and it writes nothing outside
// the sandbox.
func TestSessionStaysInside(t *testing.T) {
	boxtest.Need(t)
	for name, argv := range map[string][]string{
		"a program": {"./x"}, "a shell": {"sh", "x"}, "a script": {"bash", "-lc", "true && ./?"}, "in PATH": {"tool"}, "behind env": {"env", "PATH=bin:/usr/bin:/bin", "tool"},
	} {
		t.Run(name, func(t *testing.T) {
			top := boxtest.Folder(t)
			f := &field{top: top, work: filepath.Join(top, "work"), outside: filepath.Join(top, "outside")}
			f.put(t, "outside/file", "one\n")
			write := func(text string) {
				for _, name := range []string{"work/x", "work/bin/tool"} {
					f.put(t, name, "#!/bin/sh\n"+text+"\n")
				}
			}
			write("exit 0")
			h := &host{answer: elicit.ApprovedForSession}
			o := tool.Options{Environ: []string{"PATH=" + f.work + "/bin:/usr/bin:/bin", "HOME=" + top}, Sandbox: tool.Confine(box.New(box.Options{}))}
			turn := turnOf(o, h, f.work, "untrusted", "workspace-write")
			called(t, turn, shellCall("", argv...))
			h.answer = elicit.Denied
			write(f.evil())
			called(t, turn, shellCall("", argv...))
			if _, err := os.Stat(filepath.Join(f.work, "proof")); err != nil {
				t.Errorf("it did not run again in the sandbox: %s", h.steps())
			}
			if _, err := os.Stat(filepath.Join(f.outside, "proof")); err == nil {
				t.Errorf("it left the sandbox: %s", h.steps())
			}
			if steps := h.steps(); strings.Count(steps, "ask") != 2 || !strings.HasSuffix(steps, "retry without sandbox?") {
				t.Errorf("steps %s", steps)
			}
		})
	}
}
