package thread

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/shellword"
)

var seeds = flag.Int("seeds", nightly.Number(25, 2000), "ask about so many random patches")

// TestPatchMessagesHideNothing asks about random patches. No question is over its bound. Each names the
// files first that other programs run, and counts those that it does not name; if it does not show all of a
// patch, it says so, and where that is, and no answer to a cut one lasts.
func TestPatchMessagesHideNothing(t *testing.T) {
	t.Setenv("HOME", "/home/you")
	const place = "on the approvals page"
	words := []string{"a", "src", "Makefile", "package.json", ".envrc", ".git", "hooks", "x y", "`", "- add", "\n", "\u202e", "ü", "漢", "```", "⟨9 more files⟩", " and move it to ", "\x1b[2K", "\xff", strings.Repeat("long", 60)}
	for seed := range uint64(*seeds) {
		r := rand.New(rand.NewPCG(seed, 51))
		random := func(n int, sep string) string {
			var parts []string
			for range 1 + r.IntN(n) {
				parts = append(parts, words[r.IntN(len(words))])
			}
			return strings.Join(parts, sep)
		}
		p := protocol.PatchApprovalRequest{Cwd: "/w", Changes: map[string]protocol.FileChange{}, Links: map[string]string{}}
		root := []string{"/w/", "/w/", "/w/", "/elsewhere/"}
		for range 1 + r.IntN([]int{1, 4, 45, 600}[r.IntN(4)]) {
			path, text := root[r.IntN(len(root))]+random(4, "/"), strings.Repeat(random(3, "")+"\n", r.IntN(40))
			switch r.IntN(4) {
			case 0:
				p.Changes[path] = protocol.FileChange{Delete: &protocol.FileContent{Content: text}}
			case 1:
				u := &protocol.FileUpdate{UnifiedDiff: "@@ -1 +1,2 @@\n x\n+" + random(3, "") + "\n"}
				if r.IntN(2) == 0 {
					u.MovePath = new(root[r.IntN(len(root))] + random(3, "/"))
				}
				p.Changes[path] = protocol.FileChange{Update: u}
			default:
				p.Changes[path] = protocol.FileChange{Add: &protocol.FileContent{Content: text}}
			}
			if r.IntN(5) == 0 {
				p.Links[path] = fmt.Sprintf("/w/%d/%s", len(p.Links), random(3, "/")) // each link once
			}
		}
		p.Why = whyOf(&p)
		q := approval.PatchQuestion(p, "Codex", home())
		q.Always = &elicit.Always{Words: "x"}
		o := &elicit.Options{Elsewhere: place, Schema: elicit.FormDecision}
		message, cut := q.For(elicit.Client{}, o).Message, q.For(elicit.Client{Name: "claude-code"}, o)
		fail := func(format string, args ...any) {
			t.Errorf("seed %d, %d files: %s\n%.3000s\n%s", seed, len(p.Changes), fmt.Sprintf(format, args...), message, cut.Message)
		}
		lines := strings.Split(message, "\n")
		if n := utf8.RuneCountInString(message); n > 80_000 || len(lines) > 450 {
			fail("%d characters in %d lines", n, len(lines))
		}
		listed, inFirst, diff, left := 0, true, 0, 0
		for _, line := range lines {
			switch rest, isDiff := strings.CutPrefix(line, approval.DiffIndent); {
			case isDiff:
				if !strings.HasPrefix(rest, "```") && !strings.HasPrefix(rest, "and ") {
					diff++
				}
			case strings.HasPrefix(line, "- and "):
				var all int
				if _, err := fmt.Sscanf(strings.ReplaceAll(line, ",", ""), "- and %d more (%d in all)", &left, &all); err != nil || all != len(p.Changes) {
					fail("%v: %q", err, line)
				}
			case strings.HasPrefix(line, "- "):
				listed++
				named := strings.HasSuffix(line, ": other programs run it") || strings.HasSuffix(line, othersRun)
				if named && !inFirst {
					fail("a file that others run comes late: %q", line)
				}
				inFirst = named
			}
		}
		if listed+left != len(p.Changes) || left > 0 && listed < 1 {
			fail("%d files are listed, and %d more", listed, left)
		}
		whole, named := 0, ""
		for _, path := range slices.Sorted(maps.Keys(p.Changes)) {
			c, why, moves := p.Changes[path], p.Why[path], false
			if c.Update != nil && c.Update.MovePath != nil {
				why, moves = cmp.Or(why, p.Why[*c.Update.MovePath]), true
			}
			whole += strings.Count(strings.TrimSuffix(c.Diff(), "\n")+"\n", "\n")
			if c.Diff() == "" {
				whole--
			}
			if base := filepath.Base(path); why != "" && named == "" && len(path) < 30 && p.Links[path] == "" && !moves && shellword.Quote(base) == base {
				named = base
			} else if why != "" && named == "" {
				named = " "
			}
		}
		if !q.Partial && (diff != whole || left > 0) {
			fail("%d lines of %d are shown", diff, whole)
		}
		if says := strings.HasPrefix(lines[len(lines)-1], elicit.WholeIs+place); says != q.Partial || left > 0 && (!q.Once || !q.Partial) {
			fail("partial %t, once %t", q.Partial, q.Once)
		}
		short := strings.Split(cut.Message, "\n")
		for _, line := range short {
			if utf8.RuneCountInString(line) > 72 || len(short) > 4 {
				fail("the host cuts %q", line)
			}
		}
		if says := strings.HasPrefix(short[len(short)-1], "Not shown whole; it is "+place); q.Partial && !says || says && (!cut.Once || cut.Always != nil) || !strings.Contains(cut.Message, strings.TrimSpace(named)) {
			fail("cut: says so %t, once %t, names %q", says, cut.Once, named)
		}
	}
}
