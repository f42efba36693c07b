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
	"github.com/codexmcp/codexmcp/internal/text"
)

// Since September 2025 Codex has new forms of keys, and new keys for old settings. This
// file converts them to the form of [Config]. A value without an equivalent is converted
// to the nearest stricter one, and Notes report it.

// WebSearch says how the provider searches the web.
type WebSearch struct {
	// Cached searches the provider's index and does not reach the web itself.
	Cached bool
	// ContextSize is "", "low", "medium" or "high".
	ContextSize string
	// AllowedDomains are the only domains to search. Nil allows all.
	AllowedDomains []string
	// Location is the approximate location of the user.
	Location Location
}

// Location is a place. An unknown part is "".
type Location struct {
	Country  string `json:"country"`
	Region   string `json:"region"`
	City     string `json:"city"`
	Timezone string `json:"timezone"`
}

// adopt converts new forms in a merged layer to old ones. It sets values without an old
// form in c.
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

// adoptApprovals converts approval_policy = { granular = { … } }, which switches each kind
// of question on or off. Questions that are off are refused. Without sandbox_approval there
// is no question about leaving the sandbox, which is the policy never. With it, on-request
// is the nearest policy. Without mcp_elicitations the questions of MCP servers are
// declined. The native engine has no questions of the other kinds.
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
		return fmt.Errorf("approval_policy: want %s, or a table granular", text.Or(protocol.ApprovalPolicies()))
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

// adoptWebSearch converts web_search = "live" and the table [tools.web_search], which says
// how to search, but does not switch the search on.
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

// efforts are the known efforts. A newer one is passed on unchanged.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

func adoptEffort(merged layer, c *Config) error {
	effort, ok := merged["model_reasoning_effort"].(string)
	switch {
	case !ok: // missing, or of a wrong type, which decode reports
	case effort == "":
		return fmt.Errorf("model_reasoning_effort: is empty; leave it out or write one of %q", efforts)
	case !slices.Contains(efforts, effort):
		c.note("model_reasoning_effort: %q is not one of %s and is passed on unchanged", effort, text.Or(efforts))
	}
	return nil
}

// fromFolder makes paths in config.toml relative to its folder, as today's Codex does.
func fromFolder(file layer, home string, keys ...string) {
	for _, key := range keys {
		if path, ok := file[key].(string); ok && path != "" && !filepath.IsAbs(path) {
			file[key] = filepath.Join(home, path)
		}
	}
}

// baseURL sets the base URL of the built-in provider to openai_base_url, unless the
// provider's own table sets one.
func baseURL(merged layer, builtin string) error {
	if merged["openai_base_url"] == nil {
		return nil
	}
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

// profileFile reads a profile of today's Codex, the file NAME.config.toml. It returns nil
// if the file is missing.
func profileFile(home, name string) (layer, error) {
	path := profilePath(home, name)
	if path == "" {
		return nil, nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	table, err := readFile(path)
	if err == nil {
		fromFolder(table, home, "model_instructions_file")
	}
	return table, err
}

// profilePath returns the path of a profile's file, or "" if no file can have that name.
func profilePath(home, name string) string {
	if name != filepath.Base(name) || name == "." || name == ".." {
		return ""
	}
	return filepath.Join(home, name+".config.toml")
}

func (c *Config) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// Allows reports whether the configuration offers a tool of the server to the model. It
// does not offer a tool whose calls need an approval, because the native engine does not
// ask about tools.
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

func word[S ~string](key string, value S, allowed []string) error {
	if slices.Contains(allowed, string(value)) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %s", key, string(value), text.Or(allowed))
}
