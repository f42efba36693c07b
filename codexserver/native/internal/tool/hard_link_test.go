//go:build unix

package tool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// TestPatchThroughHardLink patches a file in the working folder that has another name
// outside. A patch that would change the content under both names is treated like one outside
// of the writable folders, and the question says why.
func TestPatchThroughHardLink(t *testing.T) {
	const (
		asked    = "ask patch, patch begin auto=false, patch end true, diff"
		applied  = "patch begin auto=true, confined, patch end true, diff"
		stopped  = "patch begin auto=true, patch end false, ASK, patch begin auto=false, patch end true, diff"
		rejected = "refused"
	)
	through := map[protocol.ApprovalPolicy]string{"untrusted": asked, "on-failure": stopped, "on-request": asked, "never": rejected}
	beside := map[protocol.ApprovalPolicy]string{"untrusted": asked, "on-failure": applied, "on-request": applied, "never": applied}
	for _, tt := range []struct {
		name, patch string
		want        map[protocol.ApprovalPolicy]string
	}{
		{"update", "Update File: hard" + changeOne, through},
		{"update by a symbolic link", "Update File: soft" + changeOne, through},
		{"overwrite", "Add File: hard\n+two\n*** End Patch", through},
		{"move onto it", "Update File: plain\n*** Move to: hard" + changeOne, through},
		{"move it", "Update File: hard\n*** Move to: new" + changeOne, beside},
		{"delete", "Delete File: hard\n*** End Patch", beside},
		{"another file", "Update File: plain" + changeOne, beside},
	} {
		for policy, want := range tt.want {
			byTool := func(t *testing.T, call tool.Call) {
				top := boxtest.Folder(t)
				work, other := filepath.Join(top, "work"), filepath.Join(top, "other")
				boxtest.Lay(t, top, "other=one\n", "work/plain=one\n", "work/soft -> hard")
				if err := os.Link(other, filepath.Join(work, "hard")); err != nil {
					t.Fatal(err)
				}
				h := &host{answer: elicit.Approved}
				turn := turnOf(tool.Options{Environ: environ, Sandbox: &fakeSandbox{host: h}, FileTools: true}, h, work, policy, "workspace-write")
				res := called(t, turn, call)
				const note = "A write to /hard changes every other name (hard link) of the file too."
				var said []string
				for _, m := range h.all {
					switch m := m.(type) {
					case protocol.PatchApprovalRequest:
						said = append(said, m.Notes...)
					case protocol.ExecApprovalRequest:
						said = append(said, m.Reason)
						if !m.FromEngine {
							t.Error("the question presents the reason as the model's")
						}
					}
				}
				wantsNote := tt.want["never"] == rejected && want != rejected
				if got := strings.ReplaceAll(strings.Join(said, " "), work, ""); strings.Contains(got, note) != wantsNote {
					t.Errorf("the question says %q", got)
				}
				steps := h.steps()
				if i := strings.Index(steps, "ask: "); i >= 0 {
					steps = steps[:i] + "ASK" + steps[strings.Index(steps, ", patch begin auto=false"):]
				}
				if diff := cmp.Diff(want, steps); diff != "" {
					t.Errorf("steps (-want +got):\n%s", diff)
				}
				text, err := os.ReadFile(other)
				if err != nil {
					t.Fatal(err)
				}
				changes := tt.want["never"] == rejected && want != rejected
				if changed := string(text) != "one\n"; changed != changes {
					t.Errorf("the other name is changed: %t; the model receives %q", changed, res.Output)
				}
				if want == rejected && !strings.Contains(res.Output, "hard link") {
					t.Errorf("the model receives %q", res.Output)
				}
			}
			t.Run(tt.name+"/"+string(policy), func(t *testing.T) { byTool(t, shellCall(t, "", "apply_patch", "*** Begin Patch\n*** "+tt.patch)) })
			if call, ok := fileCall(tt.patch); ok && call.Name == "edit" {
				t.Run(tt.name+"/"+string(policy)+"/edit", func(t *testing.T) { byTool(t, call) })
			}
		}
	}
}
