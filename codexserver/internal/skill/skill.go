// Package skill has the skill that teaches models to delegate work to the server: pages that
// clients with the extension io.modelcontextprotocol/skills (SEP-2640) find and load.
//
// The pages are in the folder delegating-to-codex. A server need not have every tool that they
// name. [New] leaves out the sections about tools and arguments that the server does not have.
package skill

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// The extension, and its methods. The last one is that of the setting directoryRead.
const (
	Extension     = "io.modelcontextprotocol/skills"
	List          = "skills/list"
	Get           = "skills/get"
	ReadDirectory = "resources/directory/read"
)

// Markdown and Directory are the types of a skill's files and directories.
const (
	Markdown  = "text/markdown"
	Directory = "inode/directory"
)

// Skill is what the server says of a skill.
type Skill struct {
	// URI is that of the page SKILL.md.
	URI         string      `json:"uri"`
	Frontmatter Frontmatter `json:"frontmatter"`
	Resources   []File      `json:"resources"`

	texts map[string]string // by URI
}

// Frontmatter is the beginning of SKILL.md.
type Frontmatter struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// File is a file of a skill, with the digest and the length of its bytes.
type File struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int    `json:"size"`
}

const (
	root  = "skill://" + name
	name  = "delegating-to-codex"
	first = "SKILL.md"
)

//go:embed delegating-to-codex/SKILL.md
var guide string

//go:embed delegating-to-codex/references/results.md
var results string

// New returns the skill, without the sections that name a tool or an argument in backquotes that
// the server lacks.
func New(lacks func(name string) bool) (*Skill, error) {
	s := &Skill{URI: root + "/" + first, texts: map[string]string{}}
	for _, page := range []struct{ path, text string }{{first, guide}, {"references/results.md", results}} {
		uri, text := root+"/"+page.path, reduce(page.text, lacks)
		s.texts[uri] = text
		s.Resources = append(s.Resources, File{uri, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))), len(text)})
	}
	var err error
	s.Frontmatter, err = parseFrontmatter(s.texts[s.URI])
	return s, err
}

// reduce returns a page without the sections that name what is lacking.
func reduce(page string, lacks func(name string) bool) string {
	const section = "\n## "
	parts := strings.Split(page, section)
	kept := parts[:1]
	for _, part := range parts[1:] {
		if !slices.ContainsFunc(quoted(part), lacks) {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, section)
}

// quoted returns what stands in backquotes.
func quoted(text string) (names []string) {
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			names = append(names, part)
		}
	}
	return names
}

// parseFrontmatter reads two lines of YAML, which have plain texts.
func parseFrontmatter(page string) (f Frontmatter, err error) {
	head, _, ok := strings.Cut(strings.TrimPrefix(page, "---\n"), "\n---\n")
	names, description, both := strings.Cut(head, "\ndescription: ")
	f.Name, f.Description = strings.TrimPrefix(names, "name: "), description
	if !ok || !both || f.Name != name || strings.ContainsAny(description, ":#\n") {
		return f, fmt.Errorf("%s: the frontmatter %q", first, head)
	}
	return f, nil
}

// Read returns the text of a file.
func (s *Skill) Read(uri string) (text string, ok bool) {
	text, ok = s.texts[uri]
	return text, ok
}

// Child is what a directory has.
type Child struct {
	Name string `json:"name"`
	URI  string `json:"uri"`
	Type string `json:"mimeType"`
}

// Children returns what is directly in a directory. It is empty if there is no such directory.
func (s *Skill) Children(directory string) []Child {
	if directory != root && !strings.HasPrefix(directory, root+"/") {
		return nil
	}
	var list []Child
	for _, f := range s.Resources { // what is in one directory stands together
		rest, inside := strings.CutPrefix(f.URI, directory+"/")
		if !inside {
			continue
		}
		child, _, deeper := strings.Cut(rest, "/")
		c := Child{child, directory + "/" + child, Markdown}
		if deeper {
			c.Type = Directory
		}
		if len(list) == 0 || list[len(list)-1] != c {
			list = append(list, c)
		}
	}
	return list
}
