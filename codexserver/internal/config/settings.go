package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/webaddr"
	"github.com/go-json-experiment/json"
)

// SettingsFile is the name of our own file next to config.toml. Our settings are not in
// config.toml, because Codex warns about tables that it does not know.
const SettingsFile = "codex-mcp.toml"

// Settings are our own settings, with their defaults.
type Settings struct {
	// Approvals say how the client is asked, and what happens if it does not answer.
	Approvals elicit.Options
	// Allow and Deny are the user's rules. Those of Deny are beginnings of argv.
	Allow []Rule
	Deny  [][]string
	// ApprovalLog is a file to which every question and decision is appended. Default:
	// none.
	ApprovalLog string
	// Page also asks on a page in the browser. PagePort is its port; 0 is a free one.
	Page     bool
	PagePort int
	// Tools are the tools to offer besides codex and codex-reply.
	Tools []string
	// ModelTools are the tools that the native engine offers to models: "auto", "files" or
	// "codex".
	ModelTools setting.Tools
	// Fetch lets the models of the native engine read pages of the web.
	Fetch setting.Fetch
	// Shared connects the client with a server of the user that all clients share.
	Shared bool
	// AlwaysLoad asks clients that load tools on demand to load ours at once.
	AlwaysLoad bool
	// Tasks say how calls become tasks.
	Tasks setting.Tasks
	// MaxResult is the size of the longest answer, and of the largest structured content of
	// a result, in bytes of JSON.
	MaxResult int
	// Hint says which results have a text that names the thread.
	Hint string
	// Patience is how long a call may take before it ends although its turn continues. 0
	// depends on the client, a negative value means forever.
	Patience time.Duration
	// Changes say how the changes of a turn are found.
	Changes setting.Changes
	// Stall is how long a model may be silent before it is reported as stuck. A negative
	// value means forever.
	Stall time.Duration
	// LockedArguments are arguments of the tool codex that calls may not choose.
	LockedArguments []string
	// TrustedCalls lets the argument config of a call set every key.
	TrustedCalls bool
	// Keep says how much is kept, and for how long.
	Keep Keep
	// Notify says what runs when a person should look.
	Notify  Notify
	HTTP    HTTP
	Auth    setting.Auth
	Limits  setting.Limits
	Sandbox setting.Sandbox
	// Ignored report key=value arguments that have no effect, and what to write instead.
	Ignored []string
}

// settingsFile is the schema of the file. [elicit.Options] checks words and times.
type settingsFile struct {
	Approvals struct {
		OnUnsupported string   `json:"on_unsupported"`
		OnError       string   `json:"on_error"`
		OnTimeout     string   `json:"on_timeout"`
		OnCancel      string   `json:"on_cancel"`
		Timeout       Duration `json:"timeout"` // 0 = for ever
		Schema        string   `json:"schema"`
		LegacyFlat    bool     `json:"legacy_flat"`
		MaxPending    int      `json:"max_pending"`

		Allow []Rule     `json:"allow"`
		Deny  [][]string `json:"deny"`
		Log   string     `json:"log"`

		Page     bool `json:"page"`
		PagePort int  `json:"page_port"`
	} `json:"approvals"`
	Shared     bool          `json:"shared"`
	Tools      []string      `json:"tools"`
	ModelTools setting.Tools `json:"model_tools"`
	AlwaysLoad bool          `json:"always_load"`
	Fetch      setting.Fetch `json:"fetch"`

	Tasks struct {
		Mode   string   `json:"mode"`
		Grace  Duration `json:"grace"`
		Resume bool     `json:"resume"`
	} `json:"tasks"`

	Results struct {
		Hint string `json:"hint"`
	} `json:"results"`
	Calls struct {
		Patience patience `json:"patience"`
	} `json:"calls"`

	Changes struct {
		Track  bool     `json:"track"`
		Files  int      `json:"files"`
		Before Duration `json:"before"`
		After  Duration `json:"after"`
	} `json:"changes"`

	LockedArguments []string `json:"locked_arguments"`
	TrustedCalls    bool     `json:"trusted_calls"`

	Keep   keepTable   `json:"keep"`
	Notify notifyTable `json:"notify"`

	HTTP  httpTable `json:"http"`
	Drain struct {
		Timeout Duration `json:"timeout"`
	} `json:"drain"`

	Auth    setting.Auth    `json:"auth"`
	Sandbox setting.Sandbox `json:"sandbox"`
	Limits  struct {
		ModelRequests int      `json:"model_requests"` // 0 = no limit, as in the next two
		Tokens        int64    `json:"tokens"`
		WallTime      Duration `json:"wall_time"`
		ResponseBytes int64    `json:"response_bytes"`
		ToolCalls     int      `json:"tool_calls"`
		Command       Duration `json:"command"`
		Idle          Duration `json:"idle"` // 0 = for ever
		Tasks         int      `json:"tasks"`
		Stall         Duration `json:"stall"` // 0 = never
		Result        int      `json:"result"`
	} `json:"limits"`
}

func (f *settingsFile) settings() *Settings {
	a := f.Approvals
	timeout := time.Duration(a.Timeout)
	switch a.Timeout {
	case 0:
		timeout = -1 // means forever in elicit
	case unset:
		timeout = 0
	}
	l := f.Limits
	return &Settings{
		Auth:        f.Auth,
		Sandbox:     f.Sandbox,
		Allow:       a.Allow,
		Deny:        a.Deny,
		ApprovalLog: a.Log,
		Page:        a.Page,
		PagePort:    a.PagePort,
		Tools:       f.Tools,
		ModelTools:  f.ModelTools,
		Fetch:       f.Fetch,
		Shared:      f.Shared,
		AlwaysLoad:  f.AlwaysLoad,
		MaxResult:   l.Result,
		Hint:        f.Results.Hint,
		Patience:    f.Calls.Patience.settings(),
		Stall:       orNone(time.Duration(l.Stall)),
		Tasks:       setting.Tasks{Never: f.Tasks.Mode == tasksNever, Grace: orNone(time.Duration(f.Tasks.Grace)), Limit: l.Tasks, NoResume: !f.Tasks.Resume},

		Changes: setting.Changes{Off: !f.Changes.Track, Files: f.Changes.Files, Before: time.Duration(f.Changes.Before), After: time.Duration(f.Changes.After)},

		LockedArguments: f.LockedArguments,
		TrustedCalls:    f.TrustedCalls,
		Keep:            f.Keep.settings(),
		Notify:          f.Notify.settings(),
		HTTP:            f.HTTP.settings(time.Duration(f.Drain.Timeout)),
		Limits: setting.Limits{
			ModelRequests: orNone(l.ModelRequests),
			Tokens:        orNone(l.Tokens),
			WallTime:      orNone(time.Duration(l.WallTime)),
			ResponseBytes: l.ResponseBytes,
			ToolCalls:     l.ToolCalls,
			Command:       time.Duration(l.Command),
			Idle:          orNone(time.Duration(l.Idle)),
		},
		Approvals: elicit.Options{
			OnUnsupported: elicit.Policy(a.OnUnsupported),
			OnError:       elicit.Policy(a.OnError),
			OnTimeout:     elicit.Policy(a.OnTimeout),
			OnCancel:      elicit.Policy(a.OnCancel),
			Timeout:       timeout,
			Schema:        elicit.Form(a.Schema),
			NoLegacyFlat:  !a.LegacyFlat,
			MaxPending:    a.MaxPending,
		},
	}
}

// orNone converts 0, which means no limit in the file, to -1, which means it in Settings.
func orNone[N int | int64 | time.Duration](n N) N {
	if n == 0 {
		return -1
	}
	return n
}

// modelTools are the words of model_tools, the default first.
var modelTools = []setting.Tools{setting.ToolsAuto, setting.ToolsFiles, setting.ToolsCodex}

// The words of tasks.mode.
const (
	tasksAuto  = "auto"
	tasksNever = "never"
)

// unset is the value of a duration that is not set.
const unset Duration = -1

// Duration is written as in Go, "90s" or "10m". 0 may be a number.
type Duration time.Duration

// UnmarshalJSON implements [json.Unmarshaler].
func (d *Duration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		if string(b) != "0" {
			return fmt.Errorf(`want a duration such as "90s" or "10m"`)
		}
		text = "0"
	}
	v, err := time.ParseDuration(text)
	if err != nil || v < 0 {
		return fmt.Errorf(`want a duration such as "90s" or "10m"`)
	}
	*d = Duration(v)
	return nil
}

// patience is a number of seconds, a duration, or "auto", which is [unset].
type patience Duration

// UnmarshalJSON implements [json.Unmarshaler].
func (p *patience) UnmarshalJSON(b []byte) error {
	text := string(b)
	if text == `"auto"` {
		*p = patience(unset)
		return nil
	}
	if b[0] != '"' {
		text = `"` + text + `s"`
	}
	d := Duration(0)
	if err := d.UnmarshalJSON([]byte(text)); err != nil || d > 0 && d < Duration(time.Second) {
		return errors.New(`want "auto", 0, or a second or more: 45 or "45s"`)
	}
	*p = patience(d)
	return nil
}

// settings returns the value of [Settings].Patience.
func (p patience) settings() time.Duration {
	if Duration(p) == unset {
		return 0
	}
	return orNone(time.Duration(p))
}

// ours are the tables and keys of our file except tools. ourTables are only the tables.
var (
	ours      = append([]string{"always_load", "locked_arguments", "model_tools", "shared", "trusted_calls"}, ourTables...)
	ourTables = []string{"approvals", "auth", "calls", "changes", "drain", "fetch", "http", "keep", "limits", "results", "sandbox", "tasks"}
)

// Ours reports whether the key of an override is one of our settings. An engine does not
// get these as configuration of Codex.
func Ours(key string) bool {
	segments, err := splitKey(key)
	return err == nil && (slices.Contains(ours, segments[0]) || segments[0] == notifyKey && len(segments) > 1)
}

// toolsKey is a key of Codex if its value is a table, and ours if it is a list.
const toolsKey = "tools"

// notifyKey is a key of Codex if its value is a list, and ours if it is a table.
const notifyKey = "notify"

// choosesOurs reports whether an override sets our list of tools or our table notify.
func choosesOurs(key string, value any) bool {
	segments, err := splitKey(key)
	return err == nil && len(segments) == 1 && (segments[0] == toolsKey && !isTable(value) || segments[0] == notifyKey && isTable(value))
}

func isTable(value any) bool {
	_, is := value.(layer)
	return is
}

// parseOverrides parses key=value arguments, later ones over earlier ones, and separates
// our settings from the keys of config.toml. Both are nested tables. ignored has a warning
// for each argument that has no effect.
func parseOverrides(args []string) (settings, codex layer, ignored []string, err error) {
	settings, codex = layer{}, layer{}
	for _, arg := range args {
		key, value, err := ParseOverride(arg)
		if err != nil {
			return nil, nil, nil, err
		}
		if table, is := misplaced(key, value); is {
			ignored = append(ignored, fmt.Sprintf("-c %s is ignored: %s is a table of %s, and no key of Codex%s", key, table, SettingsFile, meant[table]))
			continue
		}
		one, err := unflatten(layer{key: value})
		if err != nil {
			return nil, nil, nil, err
		}
		if Ours(key) || choosesOurs(key, value) {
			merge(settings, one)
		} else {
			merge(codex, one)
		}
	}
	return settings, codex, ignored, nil
}

// misplaced reports whether an override sets a table of ours to another value. It was
// meant for Codex, which ignores unknown keys.
func misplaced(key string, value any) (table string, is bool) {
	segments, err := splitKey(key)
	if err != nil || len(segments) != 1 || isTable(value) {
		return "", false
	}
	return segments[0], slices.Contains(ourTables, segments[0])
}

// meant suggests what to write instead of a misplaced override.
var meant = map[string]string{"sandbox": "; write sandbox_mode", "approvals": "; write approval_policy"}

// sources are our settings before they are decoded.
type sources struct {
	file          place
	flags, merged layer // of the arguments; of the file and the arguments
	codex         layer
	ignored       []string
}

// readSources reads codex-mcp.toml in home, by default [Home], and the key=value arguments.
func readSources(home string, args []string) (s sources, err error) {
	if s.flags, s.codex, s.ignored, err = parseOverrides(args); err != nil {
		return s, err
	}
	if home == "" {
		if home, err = Home(os.Getenv); err != nil {
			return s, err
		}
	}
	s.file = place{file: filepath.Join(home, SettingsFile)}
	if s.merged, err = readFile(s.file.file); err != nil {
		return s, err
	}
	if isTable(s.merged[toolsKey]) {
		return s, s.locate(errors.New("tools: want a list of names of tools; Codex's table tools belongs in config.toml"))
	}
	merge(s.merged, s.flags)
	return s, nil
}

// locate adds the place of the key to an error that begins with it.
func (s *sources) locate(err error) error { return locate(err, nil, s.flags, s.file) }

// LoadHTTP decodes the table http of our settings into table, a pointer to a struct that has
// a field for each key, and calls check. An error of check begins with the key.
func LoadHTTP[T any](home string, args []string, table *T, check func() error) error {
	s, err := readSources(home, args)
	if err != nil {
		return err
	}
	http, is := s.merged["http"]
	if !is {
		http = layer{}
	}
	whole := struct {
		HTTP *T `json:"http"`
	}{table}
	if err := decode(layer{"http": http}, &whole, json.RejectUnknownMembers(true)); err != nil {
		return s.locate(err)
	}
	if err := check(); err != nil {
		return s.locate(err)
	}
	return nil
}

// LoadSettings reads codex-mcp.toml in home, by default [Home], and applies those key=value
// arguments that are our settings. It returns the others for the engine. An unknown key of
// ours is an error, because it may be a misspelt limit.
func LoadSettings(home string, args []string) (s *Settings, codex map[string]any, err error) {
	from, err := readSources(home, args)
	if err != nil {
		return nil, nil, err
	}
	f := &settingsFile{}
	f.Approvals.Timeout = unset
	f.Tools = slices.Clone(Choosable)
	f.ModelTools = modelTools[0]
	f.Tasks.Mode, f.Tasks.Resume = tasksAuto, true
	f.Results.Hint = "auto"
	f.Calls.Patience = patience(unset)
	tasks, changes := setting.Tasks{}.Resolved(), setting.Changes{}.Resolved(false)
	f.Tasks.Grace, f.Limits.Tasks = Duration(tasks.Grace), tasks.Limit
	f.Drain.Timeout = Duration(30 * time.Second)
	f.Limits.Result = setting.DefaultResult
	f.Limits.Stall = Duration(setting.DefaultStall)
	f.Changes.Track = true
	f.Changes.Files, f.Changes.Before, f.Changes.After = changes.Files, Duration(changes.Before), Duration(changes.After)
	f.Approvals.LegacyFlat = true
	f.Approvals.MaxPending = elicit.DefaultMaxPending
	limits := setting.Limits{}.Resolved()
	f.Limits.ModelRequests, f.Limits.ResponseBytes, f.Limits.ToolCalls = limits.ModelRequests, limits.ResponseBytes, limits.ToolCalls
	f.Limits.Command, f.Limits.Idle = Duration(limits.Command), Duration(limits.Idle)
	f.Keep, f.Notify = defaultKeep, defaultNotify()
	if err := decode(from.merged, f, json.RejectUnknownMembers(true)); err != nil {
		return nil, nil, from.locate(err)
	}
	if err := f.check(); err != nil {
		return nil, nil, from.locate(err)
	}
	s = f.settings()
	s.Ignored = from.ignored
	return s, from.codex, nil
}

// Home returns the folder of the configuration: $CODEX_HOME, or .codex in the user's home.
func Home(getenv func(string) string) (string, error) {
	home := getenv("CODEX_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("set CODEX_HOME: %w", err)
		}
		home = filepath.Join(user, ".codex")
	}
	return filepath.Abs(home)
}

func (f *settingsFile) check() error {
	if err := f.settings().Approvals.Validate(); err != nil {
		return fmt.Errorf("approvals.%w", err)
	}
	if f.Approvals.MaxPending < 1 {
		return errors.New("approvals.max_pending: want at least 1")
	}
	if port := f.Approvals.PagePort; port < 0 || port > 65535 {
		return fmt.Errorf("approvals.page_port: %d is not a port", port)
	}
	if modes := []string{tasksAuto, tasksNever}; !slices.Contains(modes, f.Tasks.Mode) {
		return fmt.Errorf("tasks.mode: %q is not one of %q", f.Tasks.Mode, modes)
	}
	if hints := []string{"auto", "always", "never"}; !slices.Contains(hints, f.Results.Hint) {
		return fmt.Errorf("results.hint: %q is not one of %q", f.Results.Hint, hints)
	}
	if tiers := []setting.Tier{"", setting.TierThread, setting.TierNamespaces}; !slices.Contains(tiers, f.Sandbox.Tier) {
		return fmt.Errorf("sandbox.tier: %q is not one of %q", f.Sandbox.Tier, tiers[1:])
	}
	if !slices.Contains(modelTools, f.ModelTools) {
		return fmt.Errorf("model_tools: %q is not one of %q", f.ModelTools, modelTools)
	}
	if _, err := webaddr.ParseHosts(f.Fetch.Hosts); err != nil {
		return fmt.Errorf("fetch.hosts: %w", err)
	}
	switch c := f.Changes; {
	case c.Files < 1:
		return errors.New("changes.files: want at least 1")
	case c.Before == 0:
		return errors.New("changes.before: want more than 0; track = false turns this off")
	case c.After == 0:
		return errors.New("changes.after: want more than 0; track = false turns this off")
	}
	for _, name := range f.Tools {
		if !slices.Contains(Choosable, name) && !slices.Contains(always, name) {
			return fmt.Errorf("tools: %q is not one of %q", name, Choosable)
		}
	}
	for _, name := range f.LockedArguments {
		if !slices.Contains(Lockable, name) {
			return fmt.Errorf("locked_arguments: %q is not one of %q", name, Lockable)
		}
	}
	if err := errors.Join(f.HTTP.check(), f.Keep.check(), f.Notify.check()); err != nil {
		return err
	}
	return f.checkLimits()
}

// Choosable are the tools that are not always offered. It is read only.
var Choosable = []string{"codex-interrupt", "codex-list", "codex-models", "codex-review", "codex-show", "codex-wait", "codex-worktree"}

// always are the tools that are always offered.
var always = []string{"codex", "codex-reply"}

// Lockable are the arguments of the tool codex that can be locked: all but the
// prompt. It is read only.
var Lockable = []string{"approval-policy", "base-instructions", "budget", "compact-prompt", "config", "cwd", "developer-instructions", "effort", "images", "include-plan-tool", "model", "output-schema", "profile", "sandbox", "uncommitted", "web-search", "worktree", "writable-roots"}

func (f *settingsFile) checkLimits() error {
	for _, limit := range []struct {
		key          string
		value, least int64
	}{
		{"model_requests", int64(f.Limits.ModelRequests), 0},
		{"tokens", f.Limits.Tokens, 0},
		{"response_bytes", f.Limits.ResponseBytes, 1},
		{"tool_calls", int64(f.Limits.ToolCalls), 1},
		{"tasks", int64(f.Limits.Tasks), 1},
		{"result", int64(f.Limits.Result), 4096},
	} {
		if limit.value < limit.least {
			return fmt.Errorf("limits.%s: want at least %d", limit.key, limit.least)
		}
	}
	if f.Limits.Command < Duration(time.Millisecond) {
		return errors.New("limits.command: want at least 1ms")
	}
	return nil
}
