package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestCommands(t *testing.T) {
	testenv.NeedsLinks(t)
	p := newPolicy(t)
	for name, target := range map[string]string{"out": "/etc", "dangling": "/etc/nosuch"} {
		must.OK(t, os.Symlink(target, filepath.Join(p.folder, name)))
	}
	in, want := strings.NewReplacer("DIR", p.folder, `\n`, "\n"), ""
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/commands.txt"))(t))) {
		line = strings.TrimSuffix(line, "\n")
		if verdict, is := strings.CutPrefix(line, "= "); is || strings.HasPrefix(line, "#") {
			want = in.Replace(verdict)
			continue
		}
		words, script, quoted := strings.Cut(line, " |")
		argv := strings.Fields(words)
		if quoted {
			argv = append(argv, strings.TrimSuffix(script, "|"))
		}
		for i, word := range argv { // the folder's name may have a blank
			argv[i] = in.Replace(word)
		}
		must.Equal(t, fmt.Sprint(argv), want, p.explain(t.Context(), argv))
	}
}

// TestPlaces has a command that the policy allows where it would not be confined to the folder.
func TestPlaces(t *testing.T) {
	p := newPolicy(t)
	for name, tt := range map[string]struct {
		change func(*approval.Command)
		want   bool
	}{
		"in the folder":     {func(*approval.Command) {}, true},
		"without a sandbox": {func(r *approval.Command) { r.Confinable = false }, false},
		"in another folder": {func(r *approval.Command) { r.Cwd = "/" }, false},
	} {
		r := approval.Command{Command: []string{"ls"}, Cwd: p.folder, Confinable: true}
		tt.change(&r)
		out, decided := p.decide(t.Context(), &approval.Request{Subject: r})
		if decided != tt.want || decided && (out.Decision != elicit.Approved || !out.Confined) {
			t.Errorf("%s: %+v, %t", name, out, decided)
		}
	}
}

func TestPatches(t *testing.T) {
	p := newPolicy(t)
	inside, outside := filepath.Join(p.folder, "new", "file"), filepath.Join(p.folder, "..", "file")
	add := protocol.FileChange{Add: &protocol.FileContent{}}
	for name, tt := range map[string]struct {
		cwd     string
		changes map[string]protocol.FileChange
		denied  bool
	}{
		"inside":   {p.folder, map[string]protocol.FileChange{inside: add}, false},
		"relative": {p.folder, map[string]protocol.FileChange{"file": add}, false},
		"nowhere":  {"no/such", map[string]protocol.FileChange{"file": add}, true},
		"outside":  {p.folder, map[string]protocol.FileChange{inside: add, outside: add}, true},
		"moved":    {p.folder, map[string]protocol.FileChange{inside: {Update: &protocol.FileUpdate{MovePath: &outside}}}, true},
	} {
		out, decided := p.decide(t.Context(), &approval.Request{Subject: approval.Patch{Changes: tt.changes, Cwd: tt.cwd}})
		if decided != tt.denied || decided && out.Decision != elicit.Denied {
			t.Errorf("%s: %+v, %t", name, out, decided)
		}
	}
	if _, decided := p.decide(t.Context(), &approval.Request{Subject: approval.Other{}}); decided {
		t.Error("a question of another kind was decided")
	}
}
