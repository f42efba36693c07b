package turn_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/google/go-cmp/cmp"
)

// TestDiffOfPatches checks that git applies the diff of a turn whose folder is not looked at,
// as far as the diff does not name a file.
func TestDiffOfPatches(t *testing.T) {
	for _, tt := range []struct {
		name          string
		git           bool
		before, after map[string]string
		patch         string
		omits         string // in the diff's notes
	}{
		{"update", true, map[string]string{"a": "1\n2\n"}, map[string]string{"a": "1\n3\n"}, "*** Update File: a\n@@\n 1\n-2\n+3\n", ""},
		{"without a repository", false, map[string]string{"a": "1\n2\n"}, map[string]string{"a": "1\n3\n", "b": "x\n"}, "*** Update File: a\n@@\n 1\n-2\n+3\n*** Add File: b\n+x\n", ""},
		{"move", true, map[string]string{"a": "1\n2\n"}, map[string]string{"d/b": "1\n3\n"}, "*** Update File: a\n*** Move to: d/b\n@@\n 1\n-2\n+3\n", ""},
		{"delete", true, map[string]string{"a": "1\n", "b": "2\n"}, map[string]string{"b": "2\n"}, "*** Delete File: a\n", ""},
		{"odd names", true, map[string]string{"a b": "1\n", "é\"": "2\n"}, map[string]string{"a b": "3\n", "é\"": "4\n"}, "*** Update File: a b\n@@\n-1\n+3\n*** Update File: é\"\n@@\n-2\n+4\n", ""},
		{"invalid UTF-8", true, map[string]string{"a": "1\n\xff\n", "b": "1\n"}, map[string]string{"b": "2\n"}, "*** Delete File: a\n*** Update File: b\n@@\n-1\n+2\n", "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			model := providertest.New(
				providertest.Call(providertest.Shell("1", "apply_patch", "*** Begin Patch\n"+tt.patch+"*** End Patch")),
				providertest.Say("done"),
			)
			p := &place{t: t, dir: t.TempDir(), old: t.TempDir()}
			for name, text := range tt.before {
				for _, d := range []string{p.dir, p.old} {
					if err := os.WriteFile(filepath.Join(d, name), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			if tt.git {
				servertest.Git(t, p.dir, "init", "-q")
			}
			c := newWatch(changes.Options{Changes: setting.Changes{Off: true}})
			if err := runTurn(t, newNative(t, model, nil), &approve.Options{}, p.dir, thread.Attend{Turn: c.Turn}); err != nil {
				t.Fatal(err)
			}
			made := map[string]string{}
			for name, f := range p.read(p.dir) {
				made[name] = f.content
			}
			if d := cmp.Diff(tt.after, made); d != "" {
				t.Fatalf("the patch made (-want +got)\n%s", d)
			}
			diff := c.Found().Diff
			if tt.omits != "" && !strings.Contains(diff, "): a/"+tt.omits+" b/"+tt.omits+"\n") {
				t.Errorf("the diff does not name %s:\n%s", tt.omits, diff)
			}
			p.apply(diff, &protocol.TurnResult{})
		})
	}
}
