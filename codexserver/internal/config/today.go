package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Since September 2025 Codex has given keys new forms, and new keys to old
// settings. The functions here put them into the form that [Config] reads. What
// has no equal is read as the nearest stricter meaning, and Notes say so.

// WebSearch says how the provider searches the web, where it does.
type WebSearch struct {
	// Cached searches the provider's index and does not reach the web itself.
	Cached bool
	// ContextSize is "", "low", "medium" or "high".
	ContextSize string
	// AllowedDomains are the only ones to search; nil allows all.
	AllowedDomains []string
	// Location is where the user is about.
	Location Location
}

// Location is a place, each part "" when unknown.
type Location struct {
	Country  string `json:"country"`
	Region   string `json:"region"`
	City     string `json:"city"`
	Timezone string `json:"timezone"`
}

// adopt puts the new forms in a merged layer into the old ones, and what has no
// old form into c.
func adopt(merged layer, c *Config) error {
	for _, part := range []func(layer, *Config) error{adoptApprovals, adoptWebSearch, adoptEffort} {
		if err := part(merged, c); err != nil {
			return err
		}
	}
	if old := merged["experimental_instructions_file"]; old != nil && merged["model_instructions_file"] == nil {
		merged["model_instructions_file"] = old
	}
	return nil
}

// adoptApprovals reads approval_policy = { granular = { … } }: what may be asked,
// kind by kind; the rest is refused. Without sandbox_approval nothing that would
// leave the sandbox may be asked, which is never; with it on-request is the
// nearest policy. The other kinds are asked nowhere but in questions of MCP
// servers, which are declined without mcp_elicitations.
func adoptApprovals(merged layer, c *Config) error {
	if _, ok := merged["approval_policy"].(layer); !ok {
		return nil
	}
	var f struct {
		ApprovalPolicy struct {
			Granular *struct {
				SandboxApproval *bool `json:"sandbox_approval"`
				Rules           *bool `json:"rules"`
				MCPElicitations *bool `json:"mcp_elicitations"`
			} `json:"granular"`
		} `json:"approval_policy"`
	}
	if err := decode(layer{"approval_policy": merged["approval_policy"]}, &f); err != nil {
		return err
	}
	g := f.ApprovalPolicy.Granular
	if g == nil {
		return fmt.Errorf("approval_policy: want one of %q, or a table granular", protocol.ApprovalPolicies())
	}
	for name, value := range map[string]*bool{"sandbox_approval": g.SandboxApproval, "rules": g.Rules, "mcp_elicitations": g.MCPElicitations} {
		if value == nil {
			return fmt.Errorf("approval_policy.granular: %s is missing", name)
		}
	}
	policy := protocol.ApprovalNever
	if *g.SandboxApproval {
		policy = protocol.ApprovalOnRequest
	}
	merged["approval_policy"] = string(policy)
	c.DeclineElicitations = !*g.MCPElicitations
	c.note("approval_policy: granular is read as %q", policy)
	return nil
}

// adoptWebSearch reads web_search = "live", and [tools.web_search] as a table,
// which says how to search and not whether.
func adoptWebSearch(merged layer, c *Config) error {
	tools, _ := merged["tools"].(layer)
	table, isTable := tools["web_search"].(layer)
	if isTable {
		var f struct {
			Tools struct {
				WebSearch struct {
					ContextSize    string   `json:"context_size"`
					AllowedDomains []string `json:"allowed_domains"`
					Location       Location `json:"location"`
				} `json:"web_search"`
			} `json:"tools"`
		}
		if err := decode(layer{"tools": layer{"web_search": table}}, &f); err != nil {
			return err
		}
		s := f.Tools.WebSearch
		if err := word("tools.web_search.context_size", s.ContextSize, []string{"", "low", "medium", "high"}); err != nil {
			return err
		}
		c.WebSearch.ContextSize, c.WebSearch.AllowedDomains, c.WebSearch.Location = s.ContextSize, s.AllowedDomains, s.Location
		if merged["web_search"] == nil {
			c.note(`tools.web_search: the table says how to search, not whether: web search is off without web_search = "live"`)
		}
	}
	mode, _ := merged["web_search"].(string)
	if merged["web_search"] == nil && !isTable {
		return nil
	}
	if merged["web_search"] != nil {
		if err := decode(layer{"web_search": merged["web_search"]}, &struct {
			WebSearch string `json:"web_search"`
		}{}); err != nil {
			return err
		}
		if err := word("web_search", mode, []string{"disabled", "cached", "indexed", "live"}); err != nil {
			return err
		}
	}
	tools = maps.Clone(tools)
	if tools == nil {
		tools = layer{}
	}
	tools["web_search"] = mode != "" && mode != "disabled"
	merged["tools"] = tools
	c.WebSearch.Cached = mode == "cached" || mode == "indexed"
	return nil
}

// efforts are those that are known; a newer one is handed on as it is.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

func adoptEffort(merged layer, c *Config) error {
	effort, ok := merged["model_reasoning_effort"].(string)
	switch {
	case !ok: // absent, or of a type that is refused elsewhere
	case effort == "":
		return fmt.Errorf("model_reasoning_effort: is empty; leave it out or write one of %q", efforts)
	case !slices.Contains(efforts, effort):
		c.note("model_reasoning_effort: %q is not one of %q and is handed on as it is", effort, efforts)
	}
	return nil
}

// fromFolder makes a relative path of config.toml start at its folder, as today's Codex does.
func fromFolder(file layer, home string, keys ...string) {
	for _, key := range keys {
		if path, ok := file[key].(string); ok && path != "" && !filepath.IsAbs(path) {
			file[key] = filepath.Join(home, path)
		}
	}
}

// baseURL sets the address of the built-in provider to openai_base_url, unless one of its
// own table is there.
func baseURL(merged layer, builtin string) error {
	var f struct {
		URL string `json:"openai_base_url"`
	}
	if err := decode(layer{"openai_base_url": merged["openai_base_url"]}, &f); err != nil {
		return err
	}
	providers, _ := merged["model_providers"].(layer)
	openai, _ := providers["openai"].(layer)
	if f.URL == "" || openai["base_url"] != builtin {
		return nil
	}
	merge(merged, layer{"model_providers": layer{"openai": layer{"base_url": f.URL}}})
	return nil
}

// profileFile reads NAME.config.toml, where today's Codex has its profiles; nil
// when it is not there.
func profileFile(home, name string) (layer, error) {
	if name != filepath.Base(name) || name == "." || name == ".." {
		return nil, nil
	}
	path := filepath.Join(home, name+".config.toml")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	table, err := readFile(path)
	if err == nil {
		fromFolder(table, home, "model_instructions_file")
	}
	return table, err
}

func (c *Config) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// Allows reports whether the configuration offers a tool of the server to the
// model. A tool that is to be asked about before each call is not offered: the
// native engine asks about no tools.
func (s MCPServer) Allows(tool string) bool {
	if s.EnabledTools != nil && !slices.Contains(s.EnabledTools, tool) || slices.Contains(s.DisabledTools, tool) {
		return false
	}
	var mode any = s.DefaultToolsApprovalMode
	if t, ok := s.Tools[tool].(map[string]any); ok && t["approval_mode"] != nil {
		mode = t["approval_mode"]
	}
	return mode == "" || mode == "auto" || mode == "approve"
}
