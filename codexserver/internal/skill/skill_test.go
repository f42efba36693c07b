package skill_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/skill"
	"github.com/google/go-cmp/cmp"
)

const root = "skill://delegating-to-codex"

func nothing(string) bool { return false }

func Example() {
	s, err := skill.New(func(name string) bool { return name == "codex-review" })
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := s.Read(s.URI)
	fmt.Println(s.Frontmatter.Name, len(s.Resources), strings.Contains(text, "codex-review"), strings.Contains(text, "codex-show"))
	// Output: delegating-to-codex 2 false true
}

// TestNew checks the entry of the skill against its pages, as a client does.
func TestNew(t *testing.T) {
	for _, lacks := range []func(string) bool{nothing, func(name string) bool { return name == "codex-wait" }} {
		s, err := skill.New(lacks)
		if err != nil {
			t.Fatal(err)
		}
		var uris []string
		for _, f := range s.Resources {
			uris = append(uris, f.URI)
			text, ok := s.Read(f.URI)
			if !ok || f.Size != len(text) || f.Digest != fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) {
				t.Errorf("%+v does not describe a page of %d bytes", f, len(text))
			}
		}
		if want := []string{root + "/SKILL.md", root + "/references/results.md"}; !slices.Equal(uris, want) || s.URI != want[0] {
			t.Errorf("%s: %q, want %q", s.URI, uris, want)
		}
		text, _ := s.Read(s.URI)
		head := "---\nname: " + s.Frontmatter.Name + "\ndescription: " + s.Frontmatter.Description + "\n---\n"
		if !strings.HasPrefix(text, head) || len(s.Frontmatter.Description) > 1024 {
			t.Errorf("the page does not begin with %q", head)
		}
	}
}

// TestSections leaves out a section for each name that is lacking, and nothing else.
func TestSections(t *testing.T) {
	title := func(lacks ...string) []string {
		s, err := skill.New(func(name string) bool { return slices.Contains(lacks, name) })
		if err != nil {
			t.Fatal(err)
		}
		text, _ := s.Read(s.URI)
		var titles []string
		for line := range strings.Lines(text) {
			if is, ok := strings.CutPrefix(line, "## "); ok {
				titles = append(titles, strings.TrimSpace(is))
			}
		}
		return titles
	}
	all := title()
	for name, gone := range map[string][]string{
		"budget":       {"Limit a task"},
		"cwd":          {"Choose the folder"},
		"worktree":     {"Keep a task apart"},
		"background":   {"Wait"},
		"codex-review": {"Have changes reviewed"},
		"codex-show":   {"Read what was left out"},
		"unknown":      nil,
	} {
		want := slices.DeleteFunc(slices.Clone(all), func(t string) bool { return slices.Contains(gone, t) })
		if diff := cmp.Diff(want, title(name)); diff != "" {
			t.Errorf("without %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestChildren(t *testing.T) {
	s, err := skill.New(nothing)
	if err != nil {
		t.Fatal(err)
	}
	for directory, want := range map[string][]skill.Child{
		root: {
			{Name: "SKILL.md", URI: root + "/SKILL.md", Type: skill.Markdown},
			{Name: "references", URI: root + "/references", Type: skill.Directory},
		},
		root + "/references": {{Name: "results.md", URI: root + "/references/results.md", Type: skill.Markdown}},
		root + "/":           nil,
		root + "/SKILL.md":   nil,
		root + "/ref":        nil,
		"skill:/":            nil,
		"skill://other":      nil,
		"":                   nil,
	} {
		if diff := cmp.Diff(want, s.Children(directory)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", directory, diff)
		}
	}
	if _, ok := s.Read(root); ok {
		t.Error("a directory has a text")
	}
}
