package codexmcp_test

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

	"github.com/go-json-experiment/json/jsontext"
	"github.com/pelletier/go-toml/v2"
	"mvdan.cc/sh/v3/shell"
	"mvdan.cc/sh/v3/syntax"
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
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); file != "." && (name[0] == '.' || slices.Contains([]string{"testdata", "node_modules", "dist", "prompts"}, name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(file) != ".md" {
			return nil
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		p := page{file: filepath.ToSlash(file), text: string(b)}
		for _, m := range fence.FindAllStringSubmatchIndex(p.text, -1) {
			line := 1 + strings.Count(p.text[:m[0]], "\n")
			p.blocks = append(p.blocks, block{fmt.Sprintf("%s:%d", p.file, line), p.text[m[2]:m[3]], p.text[m[4]:m[5]]})
		}
		p.text = fence.ReplaceAllString(p.text, "")
		for _, m := range inline.FindAllStringSubmatch(p.text, -1) {
			p.code = append(p.code, m[1])
		}
		all = append(all, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("only %d pages found: the walk is wrong", len(all))
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
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s: %v", p.file, m[1], err)
				continue
			}
			if anchor == "" {
				continue
			}
			if i := slices.IndexFunc(all, func(p page) bool { return p.file == target }); i < 0 || !slices.Contains(all[i].anchors(), anchor) {
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

// has reports whether a package exports the name, and whether that has the member.
func has(pkg *types.Package, name, member string) bool {
	o := pkg.Scope().Lookup(name)
	if o == nil || member == "" {
		return o != nil
	}
	m, _, _ := types.LookupFieldOrMethod(o.Type(), true, pkg, member)
	return m != nil
}

func TestDocsBlocks(t *testing.T) {
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			switch b.lang {
			case "json":
				if v := jsontext.Value(b.text); !v.IsValid() {
					t.Errorf("%s: not valid JSON", b.at)
				}
			case "toml":
				var v map[string]any
				if err := toml.Unmarshal([]byte(b.text), &v); err != nil {
					t.Errorf("%s: %v", b.at, err)
				}
			case "go":
				typeCheck(t, b)
			case "sh":
				commands(t, b.at, b.text)
			case "text": // a command and what it prints
				for line := range strings.Lines(b.text) {
					if command, ok := strings.CutPrefix(line, "$ "); ok {
						commands(t, b.at, command)
					}
				}
			case "haproxy": // a test runs it
			case "ini", "dockerfile":
			default:
				t.Errorf("%s: the block's language is %q", b.at, b.lang)
			}
		}
	}
}

// commands checks that the packages, flags, folders and steps of the gate in a script exist.
func commands(t *testing.T, at, script string) {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(script), at)
	if err != nil {
		t.Errorf("%s: %v", at, err)
		return
	}
	dir := "."
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		var b strings.Builder
		if err := syntax.NewPrinter().Print(&b, &syntax.CallExpr{Args: call.Args}); err != nil {
			t.Fatal(err)
		}
		args, err := shell.Fields(b.String(), func(string) string { return "x" })
		if err != nil {
			t.Errorf("%s: %v", at, err)
			return true
		}
		switch {
		case args[0] == "cd":
			dir = path.Join(dir, args[1])
			exists(t, at, dir)
		case args[0] == ".ci/run":
			gate, err := os.ReadFile(".ci/run")
			for _, step := range args[1:] {
				if err != nil || step != "STEP" && !strings.Contains(string(gate), "step_"+step+"()") {
					t.Errorf("%s: the gate has no step %s", at, step)
				}
			}
		case strings.HasPrefix(args[0], ".ci/"):
			exists(t, at, args[0])
		case args[0] == "go" && slices.Contains([]string{"run", "install", "build", "test", "vet"}, args[1]):
			goCommand(t, at, dir, args[2:])
		}
		return true
	})
}

func goCommand(t *testing.T, at, dir string, args []string) {
	t.Helper()
	for i, arg := range args {
		pkg, ok := strings.CutPrefix(arg, module+"/")
		if ok {
			pkg, _, _ = strings.Cut(pkg, "@")
		} else if arg == "." || strings.HasPrefix(arg, "./") {
			pkg = path.Join(dir, strings.TrimSuffix(arg, "/..."))
		} else {
			continue
		}
		exists(t, at, pkg)
		var source strings.Builder
		files, _ := filepath.Glob(pkg + "/*.go")
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(b)
		}
		for j, arg := range args[i+1:] {
			if arg[0] != '-' && args[i+j][0] != '-' { // the rest is for another program
				break
			}
			name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			testing := []string{"run", "update", "count", "bench", "race", "tags", "fuzz", "v"}
			if strings.HasPrefix(arg, "-") && !slices.Contains(testing, name) && !strings.Contains(source.String(), `"`+name+`"`) {
				t.Errorf("%s: %s has no flag -%s", at, pkg, name)
			}
		}
	}
}

func exists(t *testing.T, at, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("%s: %v", at, err)
	}
}

// TestDocsGate checks that CONTRIBUTING.md has every step of the gate.
func TestDocsGate(t *testing.T) {
	gate, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	steps := regexp.MustCompile(`(?m)^all=\((.*)\)$`).FindSubmatch(gate)
	if steps == nil {
		t.Fatal("the gate lists no steps")
	}
	for step := range strings.FieldsSeq(string(steps[1])) {
		if !regexp.MustCompile("(?m)^\\|[^|]*`" + step + "`").Match(page) {
			t.Errorf("CONTRIBUTING.md does not describe the step %s", step)
		}
	}
}
