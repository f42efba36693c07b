package changes

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestPatches joins the changes that several patches make to one file.
func TestPatches(t *testing.T) {
	content := func(s string) *protocol.FileContent { return &protocol.FileContent{Content: s} }
	move := func(to string) *protocol.FileUpdate {
		u := &protocol.FileUpdate{UnifiedDiff: "-1\n+2\n+3\n"}
		if to = "/w/" + to; to != "/w/" {
			u.MovePath = &to
		}
		return u
	}
	type change = map[string]protocol.FileChange
	add, remove, update := change{"/w/a": {Add: content("1\n")}}, change{"/w/a": {Delete: content("1\n")}}, change{"/w/a": {Update: move("")}}
	rename, onward := change{"/w/a": {Update: move("b")}}, change{"/w/b": {Update: move("c")}}
	stay := change{"/w/a": {Update: move("a")}}
	for name, tt := range map[string]struct {
		patches []change
		want    string
	}{
		"added": {[]change{add}, "add a +1-0"}, "deleted": {[]change{remove}, "delete a +0-1"}, "changed": {[]change{update}, "update a +2-1"},
		"changed twice":         {[]change{update, update}, "update a +4-2"},
		"moved to itself":       {[]change{stay}, "update a +2-1"},
		"renamed":               {[]change{rename}, "rename b from a +2-1"},
		"added and changed":     {[]change{add, update}, "add a +3-1"},
		"added and renamed":     {[]change{add, rename}, "add b +3-1"},
		"added and deleted":     {[]change{add, remove}, ""},
		"changed and renamed":   {[]change{update, rename}, "rename b from a +4-2"},
		"changed and deleted":   {[]change{update, remove}, "delete a +2-2"},
		"deleted and added":     {[]change{remove, add}, "update a +1-1"},
		"renamed and changed":   {[]change{rename, {"/w/b": {Update: move("")}}}, "rename b from a +4-2"},
		"renamed and deleted":   {[]change{rename, {"/w/b": {Delete: content("1\n")}}}, "delete a +2-2"},
		"renamed twice":         {[]change{rename, onward}, "rename c from a +4-2"},
		"another file":          {[]change{update, {"/w/b": {Delete: content("1\n")}}}, "update a +2-1, delete b +0-1"},
		"outside of the folder": {[]change{{"/v/x": {Add: content("")}}}, "add /v/x +0-0"},
	} {
		var p Patches
		for _, c := range tt.patches {
			for _, success := range []bool{false, true} {
				p.Begin(protocol.PatchApplyBegin{CallID: "1", Changes: c})
				p.End(protocol.PatchApplyEnd{CallID: "1", Success: success})
			}
			p.End(protocol.PatchApplyEnd{CallID: "1", Success: true}) // of no begin
		}
		show := func(list []git.Change) string {
			var all []string
			for _, c := range list {
				from := ""
				if c.From != "" {
					from = " from " + c.From
				}
				all = append(all, fmt.Sprintf("%s %s%s +%d-%d", c.Kind, c.Path, from, c.Lines.Added, c.Lines.Removed))
			}
			return strings.Join(all, ", ")
		}
		list := p.changes("/w")
		if got := show(list); got != tt.want || p.omitted != 0 {
			t.Errorf("%s: %s, %d omitted", name, got, p.omitted)
		}
		for _, c := range list {
			path := c.Path
			if !filepath.IsAbs(path) {
				path = "/w/" + path
			}
			if got := p.of(path); got == nil || got.Kind != c.Kind {
				t.Errorf("%s: %s is %+v", name, path, got)
			}
		}
		if p.of("/w/other") != nil {
			t.Errorf("%s: another file", name)
		}
		outside := p.elsewhere(func(path string) bool { return strings.HasPrefix(path, "/w/") })
		if want := strings.Contains(tt.want, "/v/"); (show(outside) == tt.want) != want && tt.want != "" || (len(outside) > 0) != want {
			t.Errorf("%s: outside: %s", name, show(outside))
		}
	}
}
