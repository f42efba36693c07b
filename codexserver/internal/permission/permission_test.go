package permission

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// rules reads lines of an access and a path.
func rules(text string) (list []Rule) {
	for line := range strings.Lines(text) {
		access, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		list = append(list, Rule{Key: "k", Path: path, Access: Access(access)})
	}
	return list
}

// TestOf has what profiles say about paths. Without a file system all are free of links.
func TestOf(t *testing.T) {
	for _, tt := range []struct {
		name, rules string
		whole       bool
		want        map[string]Access
	}{
		{"no rule", "", true, map[string]Access{"/": Deny, "/a": Deny}},
		{"a mode decides the rest", "deny /w/s", false, map[string]Access{"/": Write, "/w": Write, "/w/s": Deny, "/w/s/x": Deny, "/w/sx": Write}},
		{"the longest path", "read :root\nwrite /w\nread /w/r\nwrite /w/r/w", true, map[string]Access{
			"/": Read, "/x": Read, "/w": Write, "/w/a": Write, "/w/r/a": Read, "/w/r/w/a": Write, "/w/ra": Write,
		}},
		{"the same path twice", "read /a\nwrite /a\nwrite /b\ndeny /b\nread /c\ndeny /c", true, map[string]Access{"/a": Write, "/b": Deny, "/c": Deny}},
		{"names stay read-only", "read :root\nwrite /w", true, map[string]Access{
			"/w/.git": Read, "/w/.git/x": Read, "/w/.codex": Read, "/w/.agents": Read, "/w/.aws": Read, "/w/a/.git": Write, "/w/.gitx": Write,
		}},
		{"unless they are named", "read :root\nwrite /w\nwrite /w/.git\ndeny /w/.aws", true, map[string]Access{"/w/.git": Write, "/w/.aws": Deny}},
		{"only what is writable is open again", "read :root\ndeny /h\nread /h/r\nwrite /h/w\nread /h/w/r", true, map[string]Access{
			"/h": Deny, "/h/r": Deny, "/h/w": Write, "/h/w/r": Read, "/h/w/x": Write,
		}},
		{"in what the root closes, reading is, too", "deny :root\nread /r\ndeny /r/s\nread /r/s/x", true, map[string]Access{
			"/": Deny, "/r": Read, "/r/s": Deny, "/r/s/x": Deny,
		}},
		{"the working folder", "read :root\nwrite :workspace_roots\nread :workspace_roots/v\ndeny :project_roots/s", true, map[string]Access{
			"/cwd": Write, "/cwd/v/x": Read, "/cwd/s": Deny, "/more/v": Read, "/more/s": Deny,
		}},
		{"a pattern", "read :root\nwrite /w\ndeny /w/**/.env\nread /w/a/.env", true, map[string]Access{
			"/w/.env": Deny, "/w/a/.env": Deny, "/w/a/b/.env": Deny, "/w/.env/x": Deny, "/w/x.env": Write, "/.env": Read,
		}},
	} {
		p := &Profile{Whole: tt.whole, Rules: rules(tt.rules), Workspaces: []string{"/more"}}
		s := p.Resolve(Places{Cwd: "/cwd"})
		for path, want := range tt.want {
			must.Equal(t, tt.name+": "+path, want, s.Of(path))
			must.Equal(t, tt.name+": the error for "+path, want == Deny, errors.Is(s.Check(path), os.ErrPermission))
		}
	}
	var none *Profile
	must.Equal(t, "without a profile", nil, none.Resolve(Places{}).Check("/etc/shadow"))
}

// TestGlobs compares what globs cover with what they find in a tree, and with their regular expressions.
func TestGlobs(t *testing.T) {
	top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	var all []string
	for _, name := range strings.Fields(".env a.env a/.env a/b/.env a/b/c/x.key a/x.key [x] a/{x} .git/x z/.env/deep pri/p pri/q/r") {
		must.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o700), os.WriteFile(filepath.Join(top, name), nil, 0o600))
	}
	must.OK(t, filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error {
		if path != top {
			all = append(all, strings.TrimPrefix(path, top+"/"))
		}
		return err
	}))
	for pattern, want := range map[string]string{
		"**/.env":      ".env a/.env a/b/.env z/.env",
		"*.env":        ".env a.env",
		"**.env":       ".env a.env",
		"?.env":        "a.env",
		"a/**":         "a/.env a/b a/x.key a/{x}",
		"a/**/*.key":   "a/b/c/x.key a/x.key",
		"**/b/**/.env": "a/b/.env",
		"a/*/c":        "a/b/c",
		"**":           ".env .git [x] a a.env pri z",
		"**/**/p":      "pri/p",
		"pri*":         "pri",
		"pri/*":        "pri/p pri/q",
		"[!a].env":     "",
		"[ab].env":     "a.env",
		"**/[[]x]":     "[x]",
		"a/{?}":        "a/{x}",
		"no/*":         "",
	} {
		must.OK(t, CheckGlob(top+"/"+pattern))
		s := (&Profile{Rules: []Rule{{Key: "k", Path: top + "/" + pattern, Access: Deny}}}).Resolve(Places{})
		var found, covered []string
		for _, m := range must.Get(s.Find())(t) {
			found = append(found, strings.TrimPrefix(m.Path, top+"/"))
		}
		slices.Sort(found)
		must.Equal(t, pattern, want, strings.Join(found, " "))
		expression := regexp.MustCompile(s.Patterns()[0])
		for _, name := range all {
			under := slices.ContainsFunc(found, func(f string) bool { return name == f || strings.HasPrefix(name, f+"/") })
			if under {
				covered = append(covered, name)
			}
			must.Equal(t, pattern+" covers "+name, under, s.Of(top+"/"+name) == Deny)
			must.Equal(t, pattern+" as an expression matches "+name, under, expression.MatchString(top+"/"+name))
		}
	}
	for _, wrong := range []string{"/a/[", "/a/[]", `/a/*\`, "/*", "/**/.env", "/[a]/b"} {
		if CheckGlob(wrong) == nil {
			t.Errorf("%q is a pattern", wrong)
		}
	}
}

// TestDepth has a glob look only so many folders deep.
func TestDepth(t *testing.T) {
	top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	must.OK(t, os.MkdirAll(top+"/a/b", 0o700))
	for _, dir := range []string{"", "/a", "/a/b"} {
		must.OK(t, os.WriteFile(top+dir+"/.env", nil, 0o600))
	}
	for depth, want := range map[int]int{0: 3, 1: 1, 2: 2, 3: 3, 4: 3} {
		s := (&Profile{Depth: depth, Rules: []Rule{{Path: top + "/**/.env", Access: Deny}}}).Resolve(Places{})
		must.Equal(t, "matches", want, len(must.Get(s.Find())(t)))
	}
}

// TestDomain has host names and the patterns of a profile.
func TestDomain(t *testing.T) {
	p := &Profile{Domains: map[string]bool{
		"example.com": true, "*.npmjs.org": true, "**.pypi.org": true, "bad.npmjs.org": false,
	}}
	for host, want := range map[string]bool{
		"example.com": true, "EXAMPLE.com": true, "example.com.": true, "a.example.com": false, "npmjs.org": false, "registry.npmjs.org": true,
		"a.b.npmjs.org": true, "bad.npmjs.org": false, "pypi.org": true, "a.pypi.org": true, "xpypi.org": false, "": false,
	} {
		allowed, known := p.Domain(host)
		must.Equal(t, host, want, allowed)
		must.Equal(t, host+" is known", true, known)
	}
	_, known := (&Profile{}).Domain("x")
	must.Equal(t, "without rules", false, known)
}

// FuzzCovers compares a pattern's own comparison with its regular expression.
func FuzzCovers(f *testing.F) {
	for _, seed := range [][2]string{{"**/.env", "a/.env"}, {"*/x", "a/x"}, {"[ab]?*", "a"}, {"**/a/**/b", "a/c/b"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		clean := func(s string) bool {
			return s != "" && utf8.ValidString(s) && filepath.IsLocal(s) && filepath.Clean(s) == s && !strings.ContainsAny(s, "\\\n\x00") && s != "."
		}
		if len(pattern)+len(name) > 200 || !clean(pattern) || !clean(name) || !isGlob(pattern) || strings.ContainsAny(pattern, "[]") || CheckGlob("/a/"+pattern) != nil {
			return
		}
		s := (&Profile{Rules: []Rule{{Path: "/no such folder/" + pattern, Access: Deny}}}).Resolve(Places{})
		path := "/no such folder/" + name
		if got, want := s.Of(path) == Deny, regexp.MustCompile(`(?s)`+s.Patterns()[0]).MatchString(path); got != want {
			t.Errorf("%q and %q: covered %t, matched %t", pattern, name, got, want)
		}
	})
}
