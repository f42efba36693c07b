//go:build unix

package patch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestShown checks what a question shows of a plan: each change by the path that the user knows,
// the links that lead to it, and the files with other names.
func TestShown(t *testing.T) {
	top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	writeTree(t, top, map[string]string{
		"work/a": "one\n", "work/b": "two\n", "work/h1": "x\n", "work/h2": "x\n", "work/binary": "x\xff\n",
		"other/a": "one\n", "outside/file": "o\n", "names/x": "",
	})
	in := func(name string) string { return filepath.Join(top, name) }
	if err := errors.Join(
		os.Symlink("../work", in("names/alias")), os.Symlink("../other", in("names/moved")),
		os.Symlink("a", in("work/link")), os.Symlink("../outside", in("work/out")),
		os.Link(in("work/h1"), in("outside/h1")), os.Link(in("work/h2"), in("outside/h2")),
	); err != nil {
		t.Fatal(err)
	}
	alias := patch.Folder{Path: in("names/alias"), Real: in("work")}
	const updateA, updateLink = "*** Update File: a\n@@\n-one\n+1\n", "*** Update File: link\n@@\n-one\n+1\n"
	const updateB = "*** Update File: b\n*** Move to: c\n@@\n-two\n+2\n"
	for name, tt := range map[string]struct {
		work    patch.Folder
		dir     string
		text    string
		changes map[string]string
		links   map[string]string
		hard    []string
		why     map[string]string
	}{
		"a file":             {work: alias, dir: "names/alias", text: updateA, changes: map[string]string{"names/alias/a": "update -one\n+1\n"}},
		"a link":             {alias, "names/alias", updateLink, map[string]string{"names/alias/a": "update -one\n+1\n"}, map[string]string{"names/alias/a": "names/alias/link"}, nil, nil},
		"a link outside":     {alias, "names/alias", "*** Delete File: out/file\n", map[string]string{"outside/file": "delete o\n"}, map[string]string{"outside/file": "names/alias/out/file"}, nil, nil},
		"the real folder":    {alias, "work", updateLink, map[string]string{"names/alias/a": "update -one\n+1\n"}, map[string]string{"names/alias/a": "work/link"}, nil, nil},
		"a folder that led":  {patch.Folder{Path: in("names/moved"), Real: in("work")}, "work", updateLink, map[string]string{"names/moved/a": "update -one\n+1\n"}, map[string]string{"names/moved/a": "work/link"}, nil, nil},
		"other names":        {alias, "names/alias", "*** Update File: h2\n@@\n-x\n+y\n*** Add File: h1\n+x\n", map[string]string{"names/alias/h1": "replace ", "names/alias/h2": "update -x\n+y\n"}, nil, []string{"names/alias/h1", "names/alias/h2"}, nil},
		"names that stay":    {work: alias, dir: "names/alias", text: "*** Update File: h2\n@@\n x\n*** Delete File: h1\n", changes: map[string]string{"names/alias/h1": "delete x\n", "names/alias/h2": "update "}},
		"moved to one place": {work: alias, dir: "names/alias", text: strings.Replace(updateA, "@@", "*** Move to: c\n@@", 1) + updateB, changes: map[string]string{"names/alias/a": "update to names/alias/c -one\n+2\n", "names/alias/b": "delete two\n"}},
		"moved and removed":  {work: alias, dir: "names/alias", text: updateB + "*** Delete File: c\n", changes: map[string]string{"names/alias/b": "delete two\n"}},
		"moved twice":        {work: alias, dir: "names/alias", text: updateB + "*** Add File: b\n+evil\n*** Update File: b\n*** Move to: d\n", changes: map[string]string{"names/alias/b": "update to names/alias/c -two\n+2\n", "names/alias/d": "add evil\n"}},
		"moved in a circle":  {work: alias, dir: "names/alias", text: "*** Update File: b\n*** Move to: c\n@@\n two\n*** Update File: c\n*** Move to: b\n@@\n-two\n+2\n", changes: map[string]string{"names/alias/b": "update -two\n+2\n"}},
		"added and moved":    {work: alias, dir: "names/alias", text: "*** Add File: n\n+x\n*** Update File: n\n*** Move to: m\n@@\n-x\n+y\n", changes: map[string]string{"names/alias/m": "add y\n"}},
		"no text": {
			work: alias, dir: "names/alias", text: "*** Delete File: binary\n",
			changes: map[string]string{"names/alias/binary": "delete x\ufffd\n"}, why: map[string]string{"names/alias/binary": "what is lost is not text"},
		},
		"no text, replaced": {work: alias, dir: "names/alias", text: "*** Add File: binary\n+y\n*** Update File: binary\n*** Move to: c\n@@\n y\n", changes: map[string]string{"names/alias/binary": "update to names/alias/c -x\ufffd\n+y\n"}, why: map[string]string{"names/alias/binary": "what is lost is not text"}},
		// What is lost.
		"replaced":           {work: alias, dir: "names/alias", text: "*** Add File: a\n+new\n", changes: map[string]string{"names/alias/a": "replace -one\n+new\n"}},
		"replaced by itself": {work: alias, dir: "names/alias", text: "*** Add File: a\n+one\n", changes: map[string]string{"names/alias/a": "replace "}},
		"deleted and added":  {work: alias, dir: "names/alias", text: "*** Delete File: a\n*** Add File: a\n+new\n", changes: map[string]string{"names/alias/a": "replace -one\n+new\n"}},
		"added and deleted":  {work: alias, dir: "names/alias", text: "*** Add File: a\n+new\n*** Delete File: a\n", changes: map[string]string{"names/alias/a": "delete one\n"}},
		"no text, added": {
			work: alias, dir: "names/alias", text: "*** Add File: binary\n+x\ufffd\n",
			changes: map[string]string{"names/alias/binary": "replace "}, why: map[string]string{"names/alias/binary": "what is lost is not text"},
		},
		"moved over": {
			work: alias, dir: "names/alias", text: strings.Replace(updateB, "to: c", "to: a", 1),
			changes: map[string]string{"names/alias/b": "delete two\n", "names/alias/a": "replace -one\n+2\n"}, why: map[string]string{"names/alias/b": "it moves over names/alias/a"},
		},
		"added and moved over": {
			work: alias, dir: "names/alias", text: "*** Add File: n\n+x\n*** Update File: n\n*** Move to: a\n",
			changes: map[string]string{"names/alias/a": "replace -one\n+x\n"},
		},
		"moved in a chain": {
			work: alias, dir: "names/alias", text: strings.Replace(updateA, "@@", "*** Move to: b\n@@", 1) + "*** Update File: b\n*** Move to: c\n",
			changes: map[string]string{"names/alias/a": "delete one\n", "names/alias/b": "update to names/alias/c -two\n+1\n"},
		},
		"exchanged": {
			work: alias, dir: "names/alias", text: "*** Update File: a\n*** Move to: c\n*** Update File: b\n*** Move to: a\n*** Update File: c\n*** Move to: b\n",
			changes: map[string]string{"names/alias/a": "replace -one\n+two\n", "names/alias/b": "replace -two\n+one\n"},
		},
		"added through a link": {
			alias, "names/alias", "*** Add File: link\n+new\n",
			map[string]string{"names/alias/a": "replace -one\n+new\n"}, map[string]string{"names/alias/a": "names/alias/link"}, nil, nil,
		},
		"moved over through a link": {
			alias, "names/alias", strings.Replace(updateB, "to: c", "to: link", 1), map[string]string{"names/alias/b": "delete two\n", "names/alias/a": "replace -one\n+2\n"},
			map[string]string{"names/alias/a": "names/alias/link"}, nil, map[string]string{"names/alias/b": "it moves over names/alias/a"},
		},
		"a link deleted": {
			work: alias, dir: "names/alias", text: "*** Delete File: link\n",
			changes: map[string]string{"names/alias/link": "delete a"}, why: map[string]string{"names/alias/link": "a symbolic link, and what it leads to stays"},
		},
		"a link moved": {
			work: alias, dir: "names/alias", text: strings.Replace(updateLink, "@@", "*** Move to: c\n@@", 1), changes: map[string]string{"names/alias/link": "update to names/alias/c -one\n+1\n"},
			why: map[string]string{"names/alias/link": "a symbolic link, and what it leads to stays"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := must.Get(patch.Parse("*** Begin Patch\n" + tt.text + "*** End Patch"))(t)
			plan := must.Get(p.Plan(tt.work, in(tt.dir)))(t)
			short := func(path string) string { return strings.TrimPrefix(path, top+"/") }
			changes, links, hard := map[string]string{}, map[string]string{}, []string{}
			for path, c := range plan.Changes() {
				var text string
				switch {
				case c.Add != nil:
					text = "add " + c.Add.Content
				case c.Delete != nil:
					text = "delete " + c.Delete.Content
				case c.Update.MovePath != nil:
					text = "to " + short(*c.Update.MovePath) + " "
					fallthrough
				default:
					_, diff, _ := strings.Cut(c.Update.UnifiedDiff, "@@\n")
					text = "update " + text + diff
					if c.Update.Replaces {
						text = "replace " + diff
					}
				}
				changes[short(path)] = text
			}
			for path, via := range plan.Links() {
				links[short(path)] = short(via)
			}
			for _, path := range plan.HardLinks() {
				hard = append(hard, short(path))
			}
			why := map[string]string{}
			for path, text := range plan.Why() {
				why[short(path)] = strings.ReplaceAll(text, top+"/", "")
			}
			must.Equal(t, "changes, links, files with other names, and why", []any{tt.changes, tt.links, tt.hard, tt.why}, []any{changes, links, hard, why}, cmpopts.EquateEmpty())
		})
	}
}
