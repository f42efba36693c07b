package house_test

import (
	"fmt"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// page is a parsed Markdown file.
type page struct {
	file   string
	blocks []block
	text   string   // without fenced blocks
	code   []string // the inline code
}

// block is the text between two fences.
type block struct {
	at, lang, text string
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```([^\n]*)\n(.*?)^ *```$\n?")
	inline  = regexp.MustCompile("`([^`\n]+)`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
)

// pages returns the project's Markdown files.
func pages(t *testing.T) []page {
	t.Helper()
	var all []page
	for _, file := range files(t, ".md") {
		p := page{file: file, text: read(t, file)}
		for _, m := range fence.FindAllStringSubmatchIndex(p.text, -1) {
			line := 1 + strings.Count(p.text[:m[0]], "\n")
			p.blocks = append(p.blocks, block{fmt.Sprintf("%s:%d", p.file, line), p.text[m[2]:m[3]], p.text[m[4]:m[5]]})
		}
		p.text = fence.ReplaceAllString(p.text, "")
		for _, m := range inline.FindAllStringSubmatch(p.text, -1) {
			p.code = append(p.code, m[1])
		}
		all = append(all, p)
	}
	return all
}

// anchors returns the anchors of a page's headings.
func (p page) anchors() []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(p.text, -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, m[1])
		name := slug
		for i := 1; slices.Contains(all, name); i++ {
			name = fmt.Sprintf("%s-%d", slug, i)
		}
		all = append(all, name)
	}
	return all
}

func TestDocsLinks(t *testing.T) {
	all := pages(t)
	for _, p := range all {
		for _, m := range link.FindAllStringSubmatch(inline.ReplaceAllString(p.text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := p.file
			if file != "" {
				target = path.Join(path.Dir(p.file), file)
			}
			exists(t, p.file+": the link "+m[1], target)
			i := slices.IndexFunc(all, func(p page) bool { return p.file == target })
			if anchor != "" && (i < 0 || !slices.Contains(all[i].anchors(), anchor)) {
				t.Errorf("%s: the link %s: no such heading", p.file, m[1])
			}
		}
	}
}

// TestDocsCode checks paths and names of packages in inline code.
func TestDocsCode(t *testing.T) {
	public := map[string]*types.Package{}
	for _, p := range exported(t) {
		public[p.Name()] = p
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	for _, p := range pages(t) {
		for _, code := range p.code {
			first, _, _ := strings.Cut(code, "/")
			word, _, _ := strings.Cut(code, " ")
			if strings.Contains(word, "/") && first != "testdata" && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == first }) {
				if found, err := filepath.Glob(strings.NewReplacer("NAME", "*", "/…", "", "/...", "").Replace(word)); err != nil || len(found) == 0 {
					t.Errorf("%s: `%s` does not exist", p.file, code)
				}
			}
			for _, m := range name.FindAllStringSubmatch(code, -1) {
				if pkg := public[m[1]]; pkg != nil && !has(pkg, m[2], m[3]) {
					t.Errorf("%s: package %s has no %s", p.file, m[1], strings.TrimPrefix(m[0], m[1]+"."))
				}
			}
			if strings.HasPrefix(code, "go ") || strings.HasPrefix(code, "cd ") || strings.HasPrefix(code, ".ci/") {
				commands(t, p.file, code)
			}
		}
	}
}

// TestDocsScreen checks that the README shows a question as Claude Code does.
func TestDocsScreen(t *testing.T) {
	_, screen, _ := strings.Cut(read(t, "README.md"), "```text\n")
	screen, _, _ = strings.Cut(screen, "```")
	if screen == "" || !strings.Contains(read(t, "test/interop/claudecode/testdata/shows_80.txtar"), screen) {
		t.Errorf("no screen of Claude Code has\n%s", screen)
	}
}

// TestDocsPackages checks that each package that others can import has an example, and that its
// comments name members in a form that compiles: [Task].Event is only promoted, so that a literal
// of Task cannot have it.
func TestDocsPackages(t *testing.T) {
	member := regexp.MustCompile(`//.*?\[([A-Z]\w*)\]\.([A-Z]\w*)`)
	for dir, p := range exported(t) {
		own, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		example := false
		for _, file := range own {
			text := read(t, file)
			example = example || strings.Contains(text, "\nfunc Example")
			for _, m := range member.FindAllStringSubmatch(text, -1) {
				o := p.Scope().Lookup(m[1])
				if o == nil {
					t.Errorf("%s: there is no %s", file, m[1])
					continue
				}
				found, at, _ := types.LookupFieldOrMethod(o.Type(), true, p, m[2])
				if _, field := found.(*types.Var); found == nil || field && len(at) > 1 {
					t.Errorf("%s: %s has no %s of its own", file, m[1], m[2])
				}
			}
		}
		if !example && len(own) > 0 {
			t.Errorf("%s has no example", dir)
		}
	}
}

// has reports whether a package exports the name, and whether that has the member.
func has(pkg *types.Package, name, member string) bool {
	o := pkg.Scope().Lookup(name)
	if o == nil || member == "" {
		return o != nil
	}
	m, _, _ := types.LookupFieldOrMethod(o.Type(), true, pkg, member)
	return m != nil
}

// TestDocsOfComments checks that the pages exist that comments name.
func TestDocsOfComments(t *testing.T) {
	page := regexp.MustCompile(`//.*?\b(docs/[a-z/-]+\.(?:md|png|svg))`)
	for _, file := range files(t, ".go") {
		for _, m := range page.FindAllStringSubmatch(read(t, file), -1) {
			exists(t, file+": the comment about "+m[1], m[1])
		}
	}
}

func exists(t *testing.T, at, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("%s: %v", at, err)
	}
}
