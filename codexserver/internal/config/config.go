package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// Config is the configuration of a conversation, from config.toml and the layers over it.
// It has only keys that the native engine uses.
type Config struct {
	Model         string `json:"model"`
	ModelProvider string `json:"model_provider"`
	// ModelProviders holds the built-in providers too.
	ModelProviders map[string]Provider `json:"model_providers"`

	ApprovalPolicy        protocol.ApprovalPolicy `json:"approval_policy" words:"untrusted,on-failure,on-request,never"`
	SandboxMode           protocol.SandboxMode    `json:"sandbox_mode" words:"read-only,workspace-write,danger-full-access"`
	SandboxWorkspaceWrite WorkspaceWrite          `json:"sandbox_workspace_write"`
	// DefaultPermissions names the profile that counts where no sandbox mode is set: one of Permissions, or a built-in one.
	DefaultPermissions string                       `json:"default_permissions"`
	Permissions        map[string]PermissionProfile `json:"permissions"`
	// Permitted is that profile, with what nobody reads besides. Nil restricts nothing.
	Permitted        *permission.Profile `json:"-"`
	ShellEnvironment run.EnvPolicy       `json:"shell_environment_policy"`
	// Environ is the environment, NAME=value, to which ShellEnvironment applies. It is not
	// a key: the engine sets it.
	Environ []string `json:"-"`

	ReasoningEffort  protocol.ReasoningEffort  `json:"model_reasoning_effort"`
	ReasoningSummary protocol.ReasoningSummary `json:"model_reasoning_summary" words:",auto,concise,detailed,none"`
	// SupportsReasoningSummaries states that an unknown model has reasoning summaries.
	SupportsReasoningSummaries bool   `json:"model_supports_reasoning_summaries"`
	Verbosity                  string `json:"model_verbosity" words:",low,medium,high"`
	// ContextWindow and AutoCompactTokenLimit are in tokens. 0 is the known value of the
	// model.
	ContextWindow         int64 `json:"model_context_window"`
	AutoCompactTokenLimit int64 `json:"model_auto_compact_token_limit"`

	HideAgentReasoning    bool `json:"hide_agent_reasoning"`
	ShowRawAgentReasoning bool `json:"show_raw_agent_reasoning"`

	// InstructionsFile is a file that replaces the model's instructions, relative to Cwd.
	// In September 2025 its key was experimental_instructions_file.
	InstructionsFile string `json:"model_instructions_file"`
	// DeveloperInstructions, unless empty, are a message with the role developer at the
	// beginning of the history.
	DeveloperInstructions string `json:"developer_instructions"`
	// CompactPrompt is the prompt of a compaction. Default: the engine's own.
	CompactPrompt string `json:"compact_prompt"`
	// ProjectDocMaxBytes is how many bytes of the project's AGENTS.md files are read.
	ProjectDocMaxBytes int64 `json:"project_doc_max_bytes"`
	// ProjectDocFallbacks are names of files to read where AGENTS.md is missing.
	ProjectDocFallbacks []string `json:"project_doc_fallback_filenames"`
	// ProjectRootMarkers are names in the top folder of a project, from which on AGENTS.md is looked for. Without any
	// it is only looked for in Cwd.
	ProjectRootMarkers []string `json:"project_root_markers"`

	IncludePlanTool       bool  `json:"include_plan_tool"`
	IncludeApplyPatchTool bool  `json:"include_apply_patch_tool"`
	Tools                 Tools `json:"tools"`

	// WebSearchMode, unless empty, overrides Tools.WebSearch.
	WebSearchMode string `json:"web_search" words:"disabled,cached,indexed,live"`
	// OpenAIBaseURL is the base URL of the built-in provider.
	OpenAIBaseURL string `json:"openai_base_url"`

	MCPServers map[string]MCPServer `json:"mcp_servers"`
	// KeyVariables are the environment variables with the keys of providers and MCP
	// servers, sorted.
	KeyVariables []string `json:"-"`
	// Notify is the argv of a program that runs when a turn is complete.
	Notify []string `json:"notify"`

	// NamedRoots are the sandbox_workspace_write.writable_roots of the user's own
	// configuration, that is of config.toml and the command line, but not of a call.
	NamedRoots []string `json:"-"`
	// OnlyReads is true for a conversation that changes nothing, whatever a turn sets.
	OnlyReads bool `json:"-"`

	// Home is the folder of config.toml, and Profile the profile that counts, "" for none.
	Home    string `json:"-"`
	Profile string `json:"-"`
	// Cwd is the conversation's absolute working folder.
	Cwd string `json:"-"`
	// BaseInstructions replaces the model's instructions when it is not nil.
	BaseInstructions *string `json:"-"`
	// WebSearch says how to search the web if Tools.WebSearch is on.
	WebSearch WebSearch `json:"-"`
	// DeclineElicitations declines the questions of MCP servers without asking the user.
	DeclineElicitations bool `json:"-"`
	// Notes report keys that are not read as written.
	Notes []string `json:"-"`
}

// WireAPI is the protocol of a provider.
type WireAPI string

// The protocols.
const (
	WireChat      WireAPI = "chat"
	WireResponses WireAPI = "responses"
)

// Provider is a model provider. It needs only a base URL.
type Provider struct {
	Name    string `json:"name"`
	BaseURL string `json:"base_url"`
	// WireAPI is the protocol. Default: WireChat.
	WireAPI WireAPI `json:"wire_api" words:",chat,responses"`
	// EnvKey names the environment variable with the key. Default: no key.
	EnvKey string `json:"env_key"`
	// EnvKeyInstructions explains to users how to get a key.
	EnvKeyInstructions string `json:"env_key_instructions"`
	// BearerToken is a key that the file itself has, and Auth the program that prints one.
	BearerToken string            `json:"experimental_bearer_token"`
	Auth        *ProviderAuth     `json:"auth"`
	QueryParams map[string]string `json:"query_params"`
	HTTPHeaders map[string]string `json:"http_headers"`
	// EnvHTTPHeaders maps headers to environment variables. A header is not sent if its
	// variable is unset or empty.
	EnvHTTPHeaders map[string]string `json:"env_http_headers"`
	// RequestMaxRetries is 4 by default, StreamMaxRetries 5.
	RequestMaxRetries *int64 `json:"request_max_retries"`
	StreamMaxRetries  *int64 `json:"stream_max_retries"`
	// StreamIdleTimeoutMS is 300,000 by default.
	StreamIdleTimeoutMS *int64 `json:"stream_idle_timeout_ms"`
	// RequiresOpenAIAuth takes the key from the environment's OPENAI_API_KEY or
	// from auth.json.
	RequiresOpenAIAuth bool `json:"requires_openai_auth"`
}

// ProviderAuth is a program of the user that prints the key of a provider. Codex has the same keys.
type ProviderAuth struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
	// Cwd is the absolute folder to run in. Default: the user's home.
	Cwd string `json:"cwd"`
	// TimeoutMS is 5,000 by default.
	TimeoutMS *int64 `json:"timeout_ms"`
	// RefreshIntervalMS is how old a key may be: 300,000 by default, 0 for one that lasts until the provider refuses it.
	RefreshIntervalMS *int64 `json:"refresh_interval_ms"`
}

// Check returns an error that names a key of the provider if its keys contradict each other.
func (p *Provider) Check() error {
	switch a := p.Auth; {
	case a == nil:
	case p.EnvKey != "" || p.BearerToken != "" || p.RequiresOpenAIAuth:
		return errors.New("auth: cannot be combined with env_key, experimental_bearer_token or requires_openai_auth")
	case strings.TrimSpace(a.Command) == "":
		return errors.New("auth.command: is missing")
	case a.Cwd != "" && !filepath.IsAbs(a.Cwd):
		return fmt.Errorf("auth.cwd: %q is no absolute path", a.Cwd)
	}
	return nil
}

// WorkspaceWrite are the settings of [protocol.SandboxWorkspaceWrite].
type WorkspaceWrite struct {
	WritableRoots       []string `json:"writable_roots"`
	NetworkAccess       bool     `json:"network_access"`
	ExcludeTmpdirEnvVar bool     `json:"exclude_tmpdir_env_var"`
	ExcludeSlashTmp     bool     `json:"exclude_slash_tmp"`
}

// Tools switches tools on and off.
type Tools struct {
	WebSearch bool `json:"web_search"`
	// ViewImage is on by default.
	ViewImage *bool `json:"view_image"`
}

// MCPServer is a server whose tools are offered to the model: a program, or a server over
// HTTP.
type MCPServer struct {
	// URL is that of a server over HTTP. The environment variable BearerTokenEnvVar has the
	// token for it. HTTPHeaders are sent with each request, and so are EnvHTTPHeaders, whose
	// values are names of environment variables.
	URL               string            `json:"url"`
	BearerTokenEnvVar string            `json:"bearer_token_env_var"`
	HTTPHeaders       map[string]string `json:"http_headers"`
	EnvHTTPHeaders    map[string]string `json:"env_http_headers"`

	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	// EnvVars are variables of the environment that the program gets besides the usual ones.
	EnvVars []EnvVar `json:"env_vars"`
	// StartupTimeoutSec is 10 by default, ToolTimeoutSec 60.
	StartupTimeoutSec float64 `json:"startup_timeout_sec"`
	ToolTimeoutSec    float64 `json:"tool_timeout_sec"`
	// Enabled is true by default. Other servers are not started.
	Enabled *bool `json:"enabled"`
	// Required has a turn fail if the server does not start.
	Required bool `json:"required"`
	// Cwd is the folder to run in, relative to the conversation's. Default: the user's home.
	Cwd string `json:"cwd"`
	// EnabledTools are the only tools to offer. Nil offers all but DisabledTools.
	EnabledTools  []string `json:"enabled_tools"`
	DisabledTools []string `json:"disabled_tools"`
	// DefaultToolsApprovalMode is "auto", "prompt" or "approve". Tools may set another for
	// a tool.
	DefaultToolsApprovalMode string         `json:"default_tools_approval_mode"`
	Tools                    map[string]any `json:"tools"`
}

// EnvVar names a variable of the environment: a name alone, or a table.
type EnvVar struct {
	Name string `json:"name"`
	// Source is where the variable is: "local", which is the default, or "remote".
	Source string `json:"source"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (v *EnvVar) UnmarshalJSON(b []byte) error {
	type table EnvVar
	var into any = (*table)(v)
	if b[0] == '"' {
		into = &v.Name
	}
	if json.Unmarshal(b, into) != nil || b[0] == '{' && v.Name == "" {
		return errors.New(`want a name, or a table such as { name = "A_KEY", source = "local" }`)
	}
	if v.Source != "" && v.Source != "local" && v.Source != "remote" {
		return fmt.Errorf("source: %q is not one of local or remote", v.Source)
	}
	return nil
}

// Sandbox returns the sandbox policy as configured.
func (c *Config) Sandbox() protocol.SandboxPolicy {
	w := c.SandboxWorkspaceWrite
	if c.SandboxMode != protocol.SandboxWorkspaceWrite && !c.Permitted.All() {
		w = WorkspaceWrite{}
	}
	return protocol.SandboxPolicy{
		Mode: c.SandboxMode, WritableRoots: w.WritableRoots, NetworkAccess: w.NetworkAccess,
		ExcludeTmpdirEnvVar: w.ExcludeTmpdirEnvVar, ExcludeSlashTmp: w.ExcludeSlashTmp,
	}
}

// Provider returns the provider that the conversation uses.
func (c *Config) Provider() Provider { return c.ModelProviders[c.ModelProvider] }

// ErrMissing reports a profile or provider that is named but not defined.
var ErrMissing = errors.New("is missing")

// missing returns an error for the key profile or model_provider, whose value names nothing.
func missing(key, name string) error {
	return fmt.Errorf("%s: there is no %q: [%[1]ss.%[3]s] %w", key, name, JoinKey(name), ErrMissing)
}

// Layers are the sources of a conversation's configuration.
type Layers struct {
	// Home is the folder of config.toml.
	Home string
	// Overrides are the keys of the command line, dotted or nested. Those of our own
	// settings are ignored.
	Overrides map[string]any
	// Call is the caller's configuration for the conversation.
	Call protocol.Config
	// OpenAIBaseURL is the base URL of the built-in provider. Default: OpenAI's.
	OpenAIBaseURL string
}

// Load reads config.toml and applies the other layers to it.
func Load(l Layers) (*Config, error) {
	path := filepath.Join(l.Home, "config.toml")
	file, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	fromFolder(file, l.Home)
	flags, err := Unflatten(l.Overrides)
	if err != nil {
		return nil, err
	}
	call, err := Unflatten(l.Call.Overrides)
	if err != nil {
		return nil, err
	}
	for key := range call {
		if Ours(key) {
			return nil, fmt.Errorf("%s: is set for the whole server, not for one call", key)
		}
	}
	if err := startsNothing(call); err != nil {
		return nil, err
	}
	Merge(call, l.Call.Keys())

	places := []place{{file: path}}
	located := func(err error) error { return locate(err, call, flags, places...) }
	name, profile, all := "", layer(nil), stack(layer{}, file, flags, call)
	if err := decode(all, &name, "profile"); err != nil {
		return nil, located(err)
	}
	if err := decode(all, new(layer), "profiles"); err != nil { // which are tables as they are
		return nil, located(err)
	}
	if name != "" {
		profiles, _ := all["profiles"].(layer)
		if profile, err = profileOf(l.Home, name, profiles); errors.Is(err, ErrMissing) {
			err = located(err)
		}
		if err != nil {
			return nil, err
		}
		places = []place{{file: profilePath(l.Home, name)}, {path, []string{"profiles", name}}, {file: path}}
	}

	merged := stack(layer{}, file, profile, flags) // the user's own
	var own WorkspaceWrite
	if err = guarded(merged, false); err == nil {
		err = decode(merged, &own, workspaceTable)
	}
	c := &Config{Home: l.Home, Profile: name, Cwd: l.Call.Cwd, BaseInstructions: l.Call.BaseInstructions}
	if err == nil {
		Merge(merged, call)
		base, _ := merged["openai_base_url"].(string)
		err = c.read(stack(defaults(cmp.Or(base, l.OpenAIBaseURL, "https://api.openai.com/v1")), merged))
	}
	if err != nil {
		return nil, located(err)
	}
	c.NamedRoots = own.WritableRoots
	if !l.Call.FromCall {
		c.NamedRoots = c.SandboxWorkspaceWrite.WritableRoots
	}
	if err := c.permit(call, file, profile, flags); err != nil {
		return nil, located(err)
	}
	if w := l.Call.WebSearch; w != nil {
		err = c.SearchWeb(*w)
	}
	return c, err
}

// startsNothing fails for a call's configuration at a path, also in one of its profiles, that names a program which
// prints a key: it would run outside the sandbox, unasked.
func startsNothing(call layer, path ...string) error {
	providers, _ := At(call, append(path, "model_providers")...).(layer)
	for name := range providers {
		if At(providers, name, "auth") != nil {
			return keyErrorf(append(path, "model_providers", name, "auth"), "names a program, so no call sets it")
		}
	}
	profiles, _ := At(call, append(path, "profiles")...).(layer)
	for name := range profiles {
		if err := startsNothing(call, append(path, "profiles", name)...); err != nil {
			return err
		}
	}
	return nil
}

// read sets c from the merged layers, and finds values that are not allowed.
func (c *Config) read(merged layer) error {
	if err := c.adopt(merged); err != nil {
		return err
	}
	if err := decode(merged, c); err != nil {
		return err
	}
	if merged["model_reasoning_effort"] == "" {
		return errors.New("model_reasoning_effort: is empty; leave it out or write one such as \"high\"")
	}
	if mode := c.WebSearchMode; mode != "" {
		c.Tools.WebSearch = mode != "disabled"
		c.WebSearch.Cached = mode == "cached" || mode == "indexed"
	}
	for _, s := range c.MCPServers {
		c.KeyVariables = append(slices.AppendSeq(c.KeyVariables, maps.Values(s.EnvHTTPHeaders)), s.BearerTokenEnvVar)
	}
	for _, p := range c.ModelProviders {
		c.KeyVariables = append(slices.AppendSeq(c.KeyVariables, maps.Values(p.EnvHTTPHeaders)), p.EnvKey)
	}
	slices.Sort(c.KeyVariables)
	c.KeyVariables = slices.DeleteFunc(slices.Compact(c.KeyVariables), func(name string) bool { return name == "" })
	if _, ok := c.ModelProviders[c.ModelProvider]; !ok {
		return missing("model_provider", c.ModelProvider)
	}
	p := c.Provider()
	if err := p.Check(); err != nil {
		return fmt.Errorf("model_providers.%s.%w", JoinKey(c.ModelProvider), err)
	}
	if at := p.BaseURL; at != "" && !strings.HasPrefix(at, "http://") && !strings.HasPrefix(at, "https://") {
		return fmt.Errorf("model_providers.%s.base_url: want http:// or https:// at the beginning",
			JoinKey(c.ModelProvider))
	}
	return nil
}

// SearchWeb switches the web search of one conversation on or off. It does not change how
// to search. It fails if the web search cannot be switched on.
func (c *Config) SearchWeb(on bool) error {
	if p := c.Provider(); on && p.WireAPI != WireResponses {
		return fmt.Errorf("argument /web-search: the provider %q has no web search: it uses wire_api = %q, and only "+
			"%q has one",
			c.ModelProvider, cmp.Or(p.WireAPI, WireChat), WireResponses)
	}
	if on && c.WebSearchMode == "disabled" {
		return errors.New(`argument /web-search: the configuration has web_search = "disabled"`)
	}
	c.Tools.WebSearch = on
	return nil
}

func defaults(openAIBaseURL string) layer {
	return layer{
		"model":                 "gpt-5-codex",
		"model_provider":        "openai",
		"approval_policy":       protocol.ApprovalOnRequest,
		"sandbox_mode":          protocol.SandboxReadOnly,
		"project_doc_max_bytes": 32 << 10,
		"project_root_markers":  []string{".git"},
		"model_providers": layer{
			"openai": layer{
				"name":                 "OpenAI",
				"base_url":             openAIBaseURL,
				"wire_api":             WireResponses,
				"requires_openai_auth": true,
			},
			"oss": layer{
				"name":     "Open models on this machine",
				"base_url": "http://localhost:11434/v1",
				"wire_api": WireChat,
			},
		},
	}
}
