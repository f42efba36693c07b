package repo

import (
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzRecord reads records that an attacker has written. An accepted one leads only to the
// store's own folders.
func FuzzRecord(f *testing.F) {
	const id = "0123456789abcdef"
	hash := strings.Repeat("a", 40)
	good := `{"version":1,"id":"` + id + `","phase":"use","threadId":"t","created":"2026-01-02T03:04:05Z","root":"/r","gitDir":"/r/.git","commonDir":"/r/.git","folder":".","path":"/home/trees/` + id + `/r","base":"` + hash + `","start":"` + hash + `"}`
	f.Add(good)
	f.Add(strings.Replace(good, `"/r/.git"`, `"/r/.git/worktrees/x"`, 1))
	f.Add(strings.Replace(good, "/trees/", "/trees/../", 1))
	f.Add(`{"version":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		s := Store{Trees: "/home/trees", Records: "/home/records"}
		w, err := s.parse([]byte(text), id)
		if err != nil {
			if text == good {
				t.Fatal(err)
			}
			return
		}
		if filepath.Dir(filepath.Dir(w.record.Path)) != s.Trees || filepath.Dir(w.record.admin()) != filepath.Join(w.record.CommonDir, "worktrees") {
			t.Errorf("%+v", w.record)
		}
		for _, name := range append([]string{w.record.Base, w.record.Start}, w.record.Saved...) {
			if strings.HasPrefix(name, "-") {
				t.Errorf("%q is an option", name)
			}
		}
	})
}

// FuzzLeadsOut looks for symbolic links that are accepted and lead out of the tree.
func FuzzLeadsOut(f *testing.F) {
	for _, pair := range [][2]string{{"a", "b"}, {"s/a", "../b"}, {"s/a", "../../b"}, {"a", "/b"}, {"a", ".git/x"}, {"s/t/a", "../x/../../b"}, {"a", "b/../.."}, {"a", ""}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, name, to string) {
		if !filepath.IsLocal(name) || path.Clean(name) != name || leadsOut(name, to) {
			return
		}
		at := path.Join(path.Dir(name), to)
		if path.IsAbs(to) || at != "." && !filepath.IsLocal(at) || isGitName(at) {
			t.Errorf("%q at %q leads to %q", to, name, at)
		}
	})
}
