package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// extensionSkills is the extension of skills. Package modern has no types for it, so its
// methods show how a server adds methods of its own.
const extensionSkills = "io.modelcontextprotocol/skills"

const (
	skillName        = "greeting"
	skillDescription = "greets people by their name"
	skillDirectory   = "skill://" + skillName
	skillFile        = skillDirectory + "/SKILL.md"
	skillReferences  = skillDirectory + "/references"
	markdown         = "text/markdown"
	directory        = "inode/directory"
)

// skillFiles are the files of the skill, by their URI.
var skillFiles = map[string]string{
	skillFile: "---\nname: " + skillName + "\ndescription: " + skillDescription +
		"\n---\n\nSay hello, in the words of references/WORDS.md.\n",
	skillReferences + "/WORDS.md": "Hello, hi, good day.\n",
}

// skill is what the server says of a skill.
type skill struct {
	URI         string            `json:"uri"`
	Frontmatter map[string]string `json:"frontmatter"`
	Resources   []skillResource   `json:"resources"`
}

type skillResource struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int    `json:"size"`
}

func theSkill() skill {
	s := skill{URI: skillFile, Frontmatter: map[string]string{"name": skillName, "description": skillDescription}}
	for _, uri := range slices.Sorted(maps.Keys(skillFiles)) {
		content := skillFiles[uri]
		s.Resources = append(s.Resources, skillResource{uri, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))),
			len(content)})
	}
	return s
}

// cached is the part of a result that says how long it may be kept.
type cached struct {
	Meta       *modern.ResultMetaObject `json:"_meta"`
	ResultType string                   `json:"resultType"`
	TTLMs      int64                    `json:"ttlMs"`
	CacheScope modern.CacheScope        `json:"cacheScope"`
}

func forAll() cached {
	return cached{identity, "complete", ttl.Milliseconds(), modern.CacheScopePublic}
}

type skillList struct {
	cached
	Skills []skill `json:"skills"`
}

type skillResult struct {
	cached
	Skill skill `json:"skill"`
}

type directoryResult struct {
	cached
	Resources []modern.Resource `json:"resources"`
}

// skillParams are the params of every method of the extension.
type skillParams struct {
	URI string `json:"uri"`
}

func handleSkills(m *jsonrpc.Mux) {
	jsonrpc.Handle(m, "skills/list", func(context.Context, skillParams) (skillList, error) {
		return skillList{forAll(), []skill{theSkill()}}, nil
	})
	jsonrpc.Handle(m, "skills/get", func(_ context.Context, p skillParams) (skillResult, error) {
		if p.URI != skillFile {
			return skillResult{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "/uri: there is no skill %q", p.URI)
		}
		return skillResult{forAll(), theSkill()}, nil
	})
	jsonrpc.Handle(m, "resources/directory/read", readDirectory)
}

// readDirectory lists what is directly in a directory of the skill.
func readDirectory(_ context.Context, p skillParams) (directoryResult, error) {
	r := directoryResult{cached: forAll()}
	for _, uri := range slices.Sorted(maps.Keys(skillFiles)) {
		rest, inside := strings.CutPrefix(uri, p.URI+"/")
		child, _, deeper := strings.Cut(rest, "/")
		switch {
		case !inside:
		case deeper:
			r.Resources = append(r.Resources,
				modern.Resource{Name: child, URI: p.URI + "/" + child, MimeType: new(directory)})
		default:
			r.Resources = append(r.Resources, modern.Resource{Name: child, URI: uri, MimeType: new(markdown)})
		}
	}
	if r.Resources == nil {
		return r, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "/uri: there is no directory %q", p.URI)
	}
	return r, nil
}
