package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
)

// SettingsFile is the name of our own file next to config.toml. Our settings are not in
// config.toml, because Codex warns about tables that it does not know.
const SettingsFile = "codex-mcp.toml"

// Settings are our settings, in the form of the options of packages codexserver and native. The keys in keys.go say
// what they mean.
type Settings struct {
	setting.Calls
	Approvals  ApprovalSettings
	Shared     bool
	ModelTools setting.Tools
	Failover   setting.Failover
	Tasks      setting.Tasks
	Changes    setting.Changes
	Notify     []string
	HTTP       HTTP
	Sandbox    setting.Sandbox
	Limits     setting.Limits
	Codex      setting.Codex
	// Ignored report key=value arguments that have no effect, and what to write instead.
	Ignored []string
}

// ApprovalSettings say how the client is asked, and what is decided without it.
type ApprovalSettings struct {
	elicit.Options
	setting.Asking
	Allow, Ask, Deny []Rule
	// Hosts is "ask", not "off", if commands in the sandbox may ask for hosts of the network. See AskHosts.
	Hosts string
	// Log is nil for the default of the program, and "" for none.
	Log        *string
	PagePort   int
	PageOrigin string
}

// NamedLog returns the file that Log names, "" if it names none.
func (a *ApprovalSettings) NamedLog() string {
	return *cmp.Or(a.Log, new(""))
}

// AskHosts reports whether commands in the sandbox may ask for hosts of the network: Hosts says so, or a rule names one.
func (a *ApprovalSettings) AskHosts() bool {
	hosts := a.Rules().Hosts
	return a.Hosts == "ask" || len(hosts.Allow)+len(hosts.Deny)+len(hosts.Ask) > 0
}

// Rules returns the rules.
func (a *ApprovalSettings) Rules() (rules approval.Rules) {
	sort := func(all []Rule, hosts *[]string, add func(approval.Rule)) {
		for _, r := range all {
			if r.Host != "" {
				*hosts = append(*hosts, r.Host)
			} else {
				add(r.Rule)
			}
		}
	}
	sort(a.Allow, &rules.Hosts.Allow, func(r approval.Rule) { rules.Allow = append(rules.Allow, r) })
	sort(a.Deny, &rules.Hosts.Deny, func(r approval.Rule) { rules.Deny = append(rules.Deny, r.Command) })
	sort(a.Ask, &rules.Hosts.Ask, func(r approval.Rule) { rules.Ask = append(rules.Ask, r.Command) })
	return rules
}

// Duration is written as in Go, "90s" or "10m", or as a number of seconds. In [Settings] each
// time.Duration is written so.
type Duration time.Duration

// UnmarshalJSON implements [json.Unmarshaler].
func (d *Duration) UnmarshalJSON(b []byte) error {
	text := string(b) + "s"
	if b[0] == '"' && json.Unmarshal(b, &text) != nil {
		text = "" // which is no duration
	}
	v, err := time.ParseDuration(text)
	if err != nil || v < 0 {
		return errors.New(`want a duration such as "90s" or "10m", or a number of seconds`)
	}
	*d = Duration(v)
	return nil
}

// Patience is how long a call may take: a duration, or "auto", which is 0 and
// depends on the client. A negative value means forever, as 0 does in the file.
type Patience time.Duration

// UnmarshalJSON implements [json.Unmarshaler].
func (p *Patience) UnmarshalJSON(b []byte) error {
	if string(b) == `"auto"` {
		*p = 0
		return nil
	}
	var d Duration
	if err := d.UnmarshalJSON(b); err != nil || d > 0 && time.Duration(d) < time.Second {
		return errors.New(`want "auto", 0, or a second or more: 45 or "45s"`)
	}
	if *p = Patience(d); d == 0 {
		*p = -1
	}
	return nil
}

// HTTP has the settings that codex-mcp http and codex-mcp-gateway share, with the meaning of their keys.
type HTTP struct {
	UnlockedArguments []string
	Hosts             []string
	Origins           []string
	Drain             time.Duration
	// Gateway are the keys that are set and only codex-mcp-gateway knows. It parses them.
	Gateway []string
}

// LockedOverHTTP are the arguments of the tool codex that a call over HTTP may not choose,
// unless the configuration unlocks them. They could loosen the sandbox or reduce approvals.
// While config is locked, web-search is locked too. Callers must not change it.
var LockedOverHTTP = []string{"approval-policy", "config", "profile", "sandbox"}

// Locked returns the arguments that calls may not choose: those in everywhere, and those of
// [LockedOverHTTP] that are not unlocked.
func (h *HTTP) Locked(everywhere []string) []string {
	more := slices.DeleteFunc(slices.Clone(LockedOverHTTP), func(name string) bool {
		return slices.Contains(h.UnlockedArguments, name) || slices.Contains(everywhere, name)
	})
	return slices.Concat(everywhere, more)
}

// Rule is one of approvals.allow: a list of words, the beginning of an argv, or a table
// { command = […], outside = true, env = […] } or { host = "…" }. One of approvals.ask or approvals.deny has no outside.
type Rule struct {
	approval.Rule
	Host string
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Rule) UnmarshalJSON(b []byte) (err error) {
	var table struct {
		Command []string `json:"command"`
		Outside bool     `json:"outside"`
		Env     []string `json:"env"`
		Host    string   `json:"host"`
	}
	switch {
	case json.Unmarshal(b, &table.Command) == nil:
	case json.Unmarshal(b, &table, json.RejectUnknownMembers(true)) != nil,
		(len(table.Command) > 0) == (table.Host != ""), table.Host != "" && (table.Outside || table.Env != nil):
		return errors.New(`want a list of words such as ["go", "test"], {command = ["go", "test"], outside = true} ` +
			`or {host = "proxy.golang.org"}`)
	case table.Host != "":
		table.Host, err = decide.HostPattern(table.Host)
	case len(table.Env) > 0 && !table.Outside:
		return errors.New("env: needs outside = true")
	}
	for _, name := range table.Env {
		if name == "" || strings.ContainsAny(name, "=*?[ \x00") {
			return fmt.Errorf("env: want whole names of variables, found %q", name)
		}
	}
	*r = Rule{Rule: approval.Rule{Command: table.Command, Outside: table.Outside, Environ: table.Env}, Host: table.Host}
	return err
}

// sources are our settings before they are decoded.
type sources struct {
	file          place
	flags, merged layer    // of the arguments; of the file and the arguments
	codex         layer    // the arguments that are keys of config.toml
	ignored       []string // a warning for each argument that has no effect
}

// readSources reads codex-mcp.toml in home, by default [Home], and the key=value arguments, later ones over
// earlier ones.
func readSources(home string, args []string) (s sources, err error) {
	s.flags, s.codex = layer{}, layer{}
	for _, arg := range args {
		key, value, err := ParseOverride(arg)
		if err != nil {
			return s, err
		}
		segments, _ := splitKey(key) // it was parsed
		one, table := Nest(value, segments...), segments[0]
		switch {
		// meant for Codex, which ignores unknown keys
		case len(segments) == 1 && slices.Contains(ourTables, table) && !isTable(value):
			instead := map[string]string{"sandbox": "; write sandbox_mode",
				"approvals": "; write approval_policy"}[table]
			s.ignored = append(s.ignored, fmt.Sprintf("-c %s is ignored: %s is a table of %s, and no key of Codex%s",
				key, table, SettingsFile, instead))
		case slices.Contains(overridable, table):
			Merge(s.flags, one)
		case Ours(table) || table == notifyTable && isTable(one[table]):
			return s, &FlagError{fmt.Errorf(
				"%s: is set in %s; of its keys -c takes those of approvals, calls, limits and http", key, SettingsFile)}
		default:
			Merge(s.codex, one)
		}
	}
	if home == "" {
		if home, err = Home(os.Getenv); err != nil {
			return s, err
		}
	}
	if err = misspelt(home, s.codex); err != nil {
		return s, err
	}
	s.file = place{file: filepath.Join(home, SettingsFile)}
	if s.merged, err = ReadFile(s.file.file); err == nil {
		Merge(s.merged, s.flags)
	}
	return s, err
}

// locate adds the place of the key to an error that begins with it.
func (s *sources) locate(err error) error { return locate(err, nil, s.flags, s.file) }

// LoadHTTP decodes the table http of our settings into table, a pointer to a struct that has
// a field for each key, and calls check. An error of check begins with the key.
func LoadHTTP(home string, args []string, table any, check func() error) error {
	s, err := readSources(home, args)
	if err != nil {
		return err
	}
	if http, is := s.merged["http"]; is {
		err = decodeKnown([]string{"http"}, http, reflect.ValueOf(table).Elem())
	}
	if err == nil {
		err = check()
	}
	return s.locate(err)
}

// LoadSettings reads codex-mcp.toml in home, by default [Home], and applies those key=value
// arguments that are our settings. It returns the others for the engine. An unknown key of
// ours is an error, because it may be a misspelt limit, and so is another one, also of config.toml and its
// profiles, that is a typo away from a key of approvals or of the sandbox.
func LoadSettings(home string, args []string) (s *Settings, codex map[string]any, err error) {
	from, err := readSources(home, args)
	if err != nil {
		return nil, nil, err
	}
	s = &Settings{Ignored: from.ignored}
	if err := s.set(from.merged); err != nil {
		return nil, nil, from.locate(err)
	}
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
