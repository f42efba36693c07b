package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/codexmcp/codexmcp/internal/webaddr"
	"github.com/go-json-experiment/json"
)

// SettingsFile is the name of our own file next to config.toml. Our settings are not in
// config.toml, because Codex warns about tables that it does not know.
const SettingsFile = "codex-mcp.toml"

// Settings are the keys of the file, in the form of the options of packages codexserver and
// native. Those that depend on others have no key.
type Settings struct {
	// Calls have keys of their own here, and in the tables Results, Call and Limits.
	setting.Calls
	// Approvals say how the client is asked, and what is decided without it.
	Approvals Approvals `json:"approvals"`
	// Shared connects the client with a server of the user that all clients share.
	Shared bool `json:"shared"`
	// ModelTools are the tools that the native engine offers to models.
	ModelTools setting.Tools `json:"model_tools"`
	// Failover says who answers when a provider of the native engine refuses.
	Failover setting.Failover `json:"failover"`
	// Tasks say how calls become tasks.
	Tasks struct {
		setting.Tasks
		Mode   string `json:"mode"`   // for Never
		Resume bool   `json:"resume"` // for NoResume
	} `json:"tasks"`
	Call struct {
		Patience   Patience           `json:"patience"`    // for Calls.Patience
		FullAccess setting.FullAccess `json:"full_access"` // for Calls.FullAccess
	} `json:"calls"`
	// Changes say how the changes of a turn are found.
	Changes struct {
		setting.Changes
		Track bool `json:"track"` // for Off
	} `json:"changes"`
	// Keep says how much is kept, and for how long.
	Keep Keep `json:"keep"`
	// Notify says what runs when a person should look.
	Notify Notify    `json:"notify"`
	HTTP   HTTPTable `json:"http"`
	Drain  struct {
		Timeout time.Duration `json:"timeout"` // for HTTP.Drain
	} `json:"drain"`
	Sandbox setting.Sandbox `json:"sandbox"`
	Limits  struct {
		setting.Limits
		Tasks  int `json:"tasks"`  // for Tasks.Limit
		Result int `json:"result"` // for Calls.MaxResult
	} `json:"limits"`
	// Ignored report key=value arguments that have no effect, and what to write instead.
	Ignored []string `json:"-"`
}

// Approvals say how the client is asked, and what is decided without it.
type Approvals struct {
	elicit.Options
	setting.Asking
	LegacyFlat bool `json:"legacy_flat"` // for NoLegacyFlat
	// Allow, Ask and Deny are the user's rules. Those of Ask and Deny are beginnings of argv.
	Allow []Rule     `json:"allow"`
	Ask   [][]string `json:"ask"`
	Deny  [][]string `json:"deny"`
	// Log is a file to which every question, its decision and what ran is appended. Nil is the
	// default of the program, and "" is none.
	Log *string `json:"log"`
	// PagePort is the port of the page; 0 is a free one. PageOrigin is the origin of a proxy or a forwarded port in front of it. Default: none.
	PagePort   int    `json:"page_port"`
	PageOrigin string `json:"page_origin"`
}

// NamedLog returns the file that Log names, "" if it names none.
func (a *Approvals) NamedLog() string {
	if a.Log == nil {
		return ""
	}
	return *a.Log
}

// newSettings returns the settings of an empty file.
func newSettings() *Settings {
	s := &Settings{Calls: setting.Calls{Tools: slices.Clone(Choosable)}, ModelTools: modelTools[0], Keep: defaultKeep, Notify: defaultNotify()}
	a := &s.Approvals
	a.Timeout, a.MaxPending, a.LegacyFlat = unset, elicit.DefaultMaxPending, true
	s.Tasks.Tasks, s.Tasks.Mode, s.Tasks.Resume = setting.Tasks{}.Resolved(), tasksAuto, true
	s.Call.FullAccess = setting.FullAccessAsk
	s.Changes.Changes, s.Changes.Track = setting.Changes{}.Resolved(false), true
	s.Drain.Timeout, s.Failover = 30*time.Second, setting.Failover{}.Resolved()
	l := &s.Limits
	l.Limits, l.Tasks, l.Result = setting.Limits{}.Resolved(), s.Tasks.Limit, setting.DefaultResult
	return s
}

// unset stands for a time-out that the file does not have: 0 in options, where the time-out may depend
// on the turn.
const unset = time.Duration(math.MinInt64)

// complete gives the settings the form of options: there a negative value means no limit, as 0 does
// in the file, and a switch that is on by default is off.
func (s *Settings) complete() {
	l := &s.Limits
	for _, limit := range []*time.Duration{&s.Approvals.Timeout, &s.Tasks.Grace, &l.WallTime} {
		*limit = orNone(*limit)
	}
	if s.Approvals.Timeout == unset {
		s.Approvals.Timeout = 0
	}
	l.ModelRequests, l.Tokens = orNone(l.ModelRequests), orNone(l.Tokens)
	a := &s.Approvals
	a.NoLegacyFlat = !a.LegacyFlat
	a.Where = cmp.Or(a.Where, setting.WhereClient)
	s.Tasks.Never, s.Tasks.NoResume, s.Tasks.Limit = s.Tasks.Mode == tasksNever, !s.Tasks.Resume, l.Tasks
	s.Changes.Off = !s.Changes.Track
	s.FullAccess = s.Call.FullAccess
	s.Patience, s.MaxResult = time.Duration(s.Call.Patience), l.Result
	s.HTTP.Drain, s.HTTP.Gateway = s.Drain.Timeout, s.HTTP.ofGateway()
}

// orNone converts 0, which means no limit in the file, to -1, which means it in options.
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

// Duration is written as in Go, "90s" or "10m". 0 may be a number. In [Settings] each
// time.Duration is written so.
type Duration time.Duration

// UnmarshalJSON implements [json.Unmarshaler].
func (d *Duration) UnmarshalJSON(b []byte) error { return readDuration(b, (*time.Duration)(d)) }

func readDuration(b []byte, d *time.Duration) error {
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
	*d = v
	return nil
}

// Patience is how long a call may take: a number of seconds, a duration, or "auto", which is 0 and
// depends on the client. A negative value means forever, as 0 does in the file.
type Patience time.Duration

// UnmarshalJSON implements [json.Unmarshaler].
func (p *Patience) UnmarshalJSON(b []byte) error {
	text := string(b)
	if text == `"auto"` {
		*p = 0
		return nil
	}
	if b[0] != '"' {
		text = `"` + text + `s"`
	}
	var d time.Duration
	if err := readDuration([]byte(text), &d); err != nil || d > 0 && d < time.Second {
		return errors.New(`want "auto", 0, or a second or more: 45 or "45s"`)
	}
	*p = Patience(orNone(d))
	return nil
}

// ourKeys are the keys of our file except tools and its tables, which are ourTables.
var (
	ourKeys   = []string{"always_load", "locked_arguments", "model_tools", "shared", "trusted_calls"}
	ourTables = []string{"approvals", "calls", "changes", "drain", "failover", "http", "keep", "limits", "sandbox", "tasks"}
)

// Ours reports whether the key of an override is one of our settings. An engine does not
// get these as configuration of Codex.
func Ours(key string) bool {
	segments, err := splitKey(key)
	return err == nil && (isOurs(segments[0]) || segments[0] == notifyKey && len(segments) > 1)
}

// isOurs reports whether a word is one of ourKeys or ourTables.
func isOurs(word string) bool {
	return slices.Contains(ourKeys, word) || slices.Contains(ourTables, word)
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
			ignored = append(ignored, fmt.Sprintf("-c %s is ignored: %s is a table of %s, and no key of Codex%s", key, table, SettingsFile, meant(table)))
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

// meant suggests what to write instead of a misplaced override, "" for most.
func meant(table string) string {
	switch table {
	case "sandbox":
		return "; write sandbox_mode"
	case "approvals":
		return "; write approval_policy"
	}
	return ""
}

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
	return s, s.read(filepath.Join(home, SettingsFile))
}

// read reads a file of settings, under the arguments.
func (s *sources) read(file string) (err error) {
	s.file = place{file: file}
	if s.merged, err = readFile(s.file.file); err != nil {
		return err
	}
	if isTable(s.merged[toolsKey]) {
		return s.locate(errors.New("tools: want a list of names of tools; Codex's table tools belongs in config.toml"))
	}
	merge(s.merged, s.flags)
	return nil
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
	if err := decodeKnown(layer{"http": http}, &whole); err != nil {
		return s.locate(err)
	}
	if err := check(); err != nil {
		return s.locate(err)
	}
	return nil
}

// LoadSettings reads codex-mcp.toml in home, by default [Home], and applies those key=value
// arguments that are our settings. It returns the others for the engine. An unknown key of
// ours is an error, because it may be a misspelt limit, and so is another one that is a typo away
// from a key of approvals or of the sandbox.
func LoadSettings(home string, args []string) (s *Settings, codex map[string]any, err error) {
	from, err := readSources(home, args)
	if err != nil {
		return nil, nil, err
	}
	if err := misspelt(from.codex); err != nil {
		return nil, nil, err
	}
	s, err = from.settings()
	return s, from.codex, err
}

// settings decodes the settings.
func (s *sources) settings() (*Settings, error) {
	all := newSettings()
	if len(s.merged) > 0 { // the defaults need no check
		if err := decodeKnown(s.merged, all); err != nil {
			return nil, s.locate(err)
		}
		if err := all.check(); err != nil {
			return nil, s.locate(err)
		}
	}
	all.complete()
	all.Ignored = s.ignored
	return all, nil
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

func (s *Settings) check() error {
	if err := cmp.Or(s.Approvals.Options.Validate(), s.Approvals.Asking.Validate()); err != nil {
		return fmt.Errorf("approvals.%w", err)
	}
	if s.Approvals.MaxPending < 1 {
		return errors.New("approvals.max_pending: want at least 1")
	}
	if port := s.Approvals.PagePort; port < 0 || port > 65535 {
		return fmt.Errorf("approvals.page_port: %d is not a port", port)
	}
	if origin := s.Approvals.PageOrigin; origin != "" {
		if _, err := webaddr.ParseOrigin(origin); err != nil {
			return fmt.Errorf("approvals.page_origin: %w", err)
		}
		if s.Approvals.PagePort == 0 {
			return errors.New("approvals.page_origin: it needs approvals.page_port, to which the proxy connects")
		}
	}
	if err := s.Call.FullAccess.Validate(); err != nil {
		return fmt.Errorf("calls.full_access: %w", err)
	}
	if modes := []string{tasksAuto, tasksNever}; !slices.Contains(modes, s.Tasks.Mode) {
		return fmt.Errorf("tasks.mode: %q is not one of %s", s.Tasks.Mode, text.Or(modes))
	}
	if !slices.Contains(modelTools, s.ModelTools) {
		return fmt.Errorf("model_tools: %q is not one of %s", s.ModelTools, text.Or(modelTools))
	}
	if err := s.Failover.Validate(); err != nil {
		return fmt.Errorf("failover.%w", err)
	}
	switch c := s.Changes; {
	case c.Files < 1:
		return errors.New("changes.files: want at least 1")
	case c.Before == 0:
		return errors.New("changes.before: want more than 0; track = false turns this off")
	case c.After == 0:
		return errors.New("changes.after: want more than 0; track = false turns this off")
	}
	for _, name := range s.Tools {
		if !slices.Contains(Choosable, name) && !slices.Contains(always, name) {
			return fmt.Errorf("tools: %q is not one of %s", name, text.Or(Choosable))
		}
	}
	for _, name := range s.LockedArguments {
		if !slices.Contains(Lockable, name) {
			return fmt.Errorf("locked_arguments: %q is not one of %s", name, text.Or(Lockable))
		}
	}
	if err := errors.Join(s.HTTP.check(), s.Keep.check(), s.Notify.check()); err != nil {
		return err
	}
	return s.checkLimits()
}

// Choosable are the tools that are not always offered. It is read only.
var Choosable = []string{"codex-interrupt", "codex-list", "codex-models", "codex-review", "codex-show", "codex-wait"}

// always are the tools that are always offered.
var always = []string{"codex", "codex-reply"}

// Lockable are the arguments of the tool codex that can be locked: all but the
// prompt. It is read only.
var Lockable = []string{"approval-policy", "base-instructions", "budget", "compact-prompt", "config", "cwd", "developer-instructions", "effort", "images", "include-plan-tool", "model", "output-schema", "profile", "sandbox", "web-search", "worktree"}

func (s *Settings) checkLimits() error {
	for _, limit := range []struct {
		key          string
		value, least int64
	}{
		{"model_requests", int64(s.Limits.ModelRequests), 0},
		{"tokens", s.Limits.Tokens, 0},
		{"response_bytes", s.Limits.ResponseBytes, 1},
		{"tasks", int64(s.Limits.Tasks), 1},
		{"result", int64(s.Limits.Result), 4096},
	} {
		if limit.value < limit.least {
			return fmt.Errorf("limits.%s: want at least %d", limit.key, limit.least)
		}
	}
	if s.Limits.Command < time.Millisecond {
		return errors.New("limits.command: want at least 1ms")
	}
	return nil
}
