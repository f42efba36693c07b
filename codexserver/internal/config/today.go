package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/text"
)

// Since September 2025 Codex has new forms of keys, and new keys for old settings. This
// file converts them to the form of [Config]. A value without an equivalent is converted
// to the nearest stricter one, and Notes report it.

// WebSearch says how the provider searches the web.
type WebSearch struct {
	// Cached searches the provider's index and does not reach the web itself.
	Cached      bool   `json:"-"`
	ContextSize string `json:"context_size" words:",low,medium,high"`
	// AllowedDomains are the only domains to search. Nil allows all.
	AllowedDomains []string `json:"allowed_domains"`
	// Location is the approximate location of the user.
	Location Location `json:"location"`
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
func (c *Config) adopt(merged layer) error {
	if old := merged["experimental_instructions_file"]; old != nil && merged["model_instructions_file"] == nil {
		merged["model_instructions_file"] = old
	}
	if isTable(merged["approval_policy"]) {
		if err := c.adoptApprovals(merged); err != nil {
			return err
		}
	}
	// The table [tools.web_search] says how to search, but does not switch the search on.
	if !isTable(At(merged, "tools", "web_search")) {
		return nil
	}
	if merged["web_search"] == nil {
		c.Notes = append(c.Notes, `tools.web_search: the table says how to search, not whether: web search is off `+
			`without web_search = "live"`)
	}
	err := decode(merged, &c.WebSearch, "tools", "web_search")
	Merge(merged, Nest(false, "tools", "web_search"))
	return err
}

// adoptApprovals converts approval_policy = { granular = { … } }, which switches each kind
// of question on or off. Questions that are off are refused. Without sandbox_approval there
// is no question about leaving the sandbox, which is the policy never. With it, on-request
// is the nearest policy. Without mcp_elicitations the questions of MCP servers are
// declined. The native engine has no questions of the other kinds.
func (c *Config) adoptApprovals(merged layer) error {
	var on map[string]bool
	if err := decode(merged, &on, "approval_policy", "granular"); err != nil {
		return err
	}
	if on == nil {
		return fmt.Errorf("approval_policy: want %s, or a table granular", text.Or(protocol.ApprovalPolicies()))
	}
	for _, name := range []string{"sandbox_approval", "rules", "mcp_elicitations"} {
		if _, set := on[name]; !set {
			return fmt.Errorf("approval_policy.granular: %s is missing", name)
		}
	}
	policy := protocol.ApprovalNever
	if on["sandbox_approval"] {
		policy = protocol.ApprovalOnRequest
	}
	merged["approval_policy"] = policy
	c.DeclineElicitations = !on["mcp_elicitations"]
	c.Notes = append(c.Notes, fmt.Sprintf("approval_policy: granular is read as %q", policy))
	return nil
}

// fromFolder makes a path in a file relative to its folder, as today's Codex does.
func fromFolder(file layer, home string) {
	const key = "model_instructions_file"
	if path, ok := file[key].(string); ok && path != "" && !filepath.IsAbs(path) {
		file[key] = filepath.Join(home, path)
	}
}

// profileOf returns the keys of a profile: those of the file NAME.config.toml, which today's Codex uses, or of
// the table NAME of tables, which older ones used. The error is [ErrMissing] if there is neither.
func profileOf(home, name string, tables layer) (layer, error) {
	if path := profilePath(home, name); path != "" {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			file, err := ReadFile(path)
			fromFolder(file, home)
			return file, err
		}
	}
	if table, is := tables[name].(layer); is {
		return table, nil
	}
	return nil, missing("profile", name)
}

// Profile returns the keys of a profile in home. The error is [ErrMissing] if there is none.
func Profile(home, name string) (map[string]any, error) {
	file, err := ReadFile(filepath.Join(home, "config.toml"))
	if err != nil {
		return nil, err
	}
	profiles, _ := file["profiles"].(layer)
	return profileOf(home, name, profiles)
}

// Profiles returns the names of the profiles that can be chosen, sorted: the tables of
// config.toml, and the files NAME.config.toml next to it.
func Profiles(home string) ([]string, error) {
	file, err := ReadFile(filepath.Join(home, "config.toml"))
	if err != nil {
		return nil, err
	}
	tables, _ := file["profiles"].(layer)
	names := slices.Collect(maps.Keys(tables))
	entries, err := os.ReadDir(home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".config.toml"); ok && name != "" && entry.Type().IsRegular() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// profilePath returns the path of a profile's file, or "" if no file can have that name.
func profilePath(home, name string) string {
	if name != filepath.Base(name) || name == "." || name == ".." {
		return ""
	}
	return filepath.Join(home, name+".config.toml")
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
