package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/codexmcp/codexmcp/internal/webaddr"
)

// key is a key of codex-mcp.toml. Each stands here once. The page docs/configuration.md is made from it.
type key struct {
	name    string
	into    any // a pointer into the settings; nil for a key of codex-mcp-gateway
	initial any // the default as the file has it, or what it means if it is [unset]
	check   check
	meaning string // for the page; "" continues the meaning of the key before
}

// unset is what a setting means that stays unset by default; nil if the page does not say it.
type unset struct{ means any }

// check checks a value, and may convert it to that of an option. Its error follows the key. Nil takes each value.
type check func(v reflect.Value) error

// keys returns the keys of s, grouped by tables.
func (s *Settings) keys() []key {
	return slices.Concat([]key{
		{"shared", &s.Shared, false, nil, "clients [share a server](shared.md)"},
		{"model_tools", &s.ModelTools, "auto", oneOf(setting.ToolsAuto, setting.ToolsFiles, setting.ToolsCodex),
			"[tools of the native engine's model](engines.md#tools): `files`, `codex`, `auto`"},
	}, s.approvalKeys(), s.callKeys(), s.otherKeys())
}

func (s *Settings) approvalKeys() []key {
	a := &s.Approvals
	place, failure := oneOf(setting.WhereClient, setting.WherePage, setting.WhereBoth),
		oneOf("deny", "abort", "fail-call")
	return []key{
		{"approvals.where", &a.Where, "client", place,
			"[who is asked](approvals.md#who-is-asked): `client`, `page`, `both`"},
		{"approvals.clients", &a.Clients, unset{layer{}}, func(v reflect.Value) error {
			for _, name := range slices.Sorted(maps.Keys(a.Clients)) {
				if err := place(reflect.ValueOf(a.Clients[name])); err != nil {
					return fmt.Errorf("%s: %w", JoinKey(name), err)
				}
			}
			return nil
		}, "the same for single clients"},
		{"approvals.reviewer", &s.Codex.Reviewer, "codex", oneOf(setting.ReviewerCodex, setting.ReviewerPerson),
			"[who decides](engines.md#what-codex-asks) what Codex asks about: `codex`, whom its `approvals_reviewer` " +
				"names; `person`"},
		{"approvals.timeout", &a.Timeout, unset{"10m"}, noLimit,
			"how long an answer may take; if it is not set, an hour for questions of tasks"},
		{"approvals.on_unsupported", &a.OnUnsupported, unset{"deny"}, failure,
			""},
		{"approvals.on_error", &a.OnError, unset{"deny"}, failure, ""},
		{"approvals.on_timeout", &a.OnTimeout, unset{"deny"}, failure,
			"[the decision](approvals.md#every-answer-and-what-it-does) without an answer: `deny`, `abort`, " +
				"`fail-call`"},
		{"approvals.on_cancel", &a.OnCancel, unset{"abort"}, oneOf("abort", "deny"),
			"the answer `cancel`: `abort`, `deny`"},
		{"approvals.schema", &a.Schema, unset{"empty"}, oneOf("empty", "decision", "auto", "decision-both"),
			"[the form](approvals.md#every-answer-and-what-it-does): `empty`, `decision`, `auto`, `decision-both`"},
		{"approvals.allow", &a.Allow, unset{[]any{}}, nil, ""},
		{"approvals.deny", &a.Deny, unset{[]any{}}, inside, ""},
		{"approvals.ask", &a.Ask, unset{[]any{}}, inside,
			"[rules](rules.md#rules): commands that run or are denied unasked, or asked about each time"},
		{"approvals.hosts", &a.Hosts, "off", oneOf("off", "ask"),
			"`ask`, or a rule that names a host: commands in `workspace-write` [ask for each " +
				"host](approvals.md#the-network-by-the-host); `off`"},
		{"approvals.log", &a.Log, unset{}, nil,
			"the file of [the log](approvals.md#the-log); `\"\"` keeps none. By default `codex-mcp/approvals.log` in " +
				"`$CODEX_HOME`"},
		{"approvals.page_port", &a.PagePort, 0, func(v reflect.Value) error {
			if port := v.Int(); port < 0 || port > 65535 {
				return fmt.Errorf("%d is not a port", port)
			}
			return nil
		}, "the port of the page; `0` is any"},
		{"approvals.page_origin", &a.PageOrigin, "", func(v reflect.Value) error {
			switch _, err := webaddr.ParseOrigin(a.PageOrigin); {
			case a.PageOrigin == "":
				return nil
			case err == nil && a.PagePort == 0:
				return errors.New("it needs approvals.page_port, to which the proxy connects")
			default:
				return err
			}
		}, "its origin [from elsewhere](page.md#on-another-machine)"},
	}
}

func (s *Settings) callKeys() []key {
	c := &s.Calls
	return []key{
		{"calls.full_access", &c.FullAccess, "ask",
			oneOf(setting.FullAccessAsk, setting.FullAccessAllow, setting.FullAccessDeny),
			"a call that [asks for more](approvals.md#more-than-the-configuration): `ask`, `allow`, `deny`"},
		{"calls.trusted", &c.TrustedCalls, false, nil,
			"a call's `config` may set every key, not only [the listed ones](#what-a-call-may-set)"},
		{"calls.locked_arguments", &c.LockedArguments, unset{[]any{}}, each(Lockable),
			"arguments of `codex` that are not offered, and refused"},
		{"calls.check", &c.Check, "", func(reflect.Value) error { return setting.ValidateCheck(c.Check) },
			"[a command](tasks.md#a-check) that says whether a turn is done, for each call"},
		{"calls.setup", &c.Setup, "", func(reflect.Value) error { return setting.ValidateCheck(c.Setup) },
			"[a command](tasks.md#the-set-up) that prepares each new worktree"},
		{"calls.tools", &c.Tools, Choosable, each(Choosable, always...),
			"tools to offer besides `codex` and `codex-reply`"},
		{"calls.always_load", &c.AlwaysLoad, false, nil,
			"asks clients that load tools on demand to load these at once"},
		{"calls.patience", (*Patience)(&c.Patience), "auto", nil,
			"when a call [ends before its turn](tasks.md#the-background): `\"45s\"`, `0` for never, `auto`"},
		{"calls.tasks", &s.Tasks.Mode, "auto", oneOf(setting.TasksAuto, setting.TasksNever),
			"`auto`: a call becomes [a task](tasks.md#the-background) if the client declares them; `never`"},
		{"calls.grace", &s.Tasks.Grace, "1s", noLimit, "the time before that"},
		{"calls.resume", &s.Tasks.Resume, true, nil,
			"continues what [a killed server](tasks.md#interruptions-and-restarts) did"},
		{"calls.changes", &s.Changes.Read, true, nil,
			"finds [what a turn changed](wire.md#the-result-of-a-turn) by reading folders; `false`: only patches"},
	}
}

func (s *Settings) otherKeys() []key {
	l, h := &s.Limits, &s.HTTP
	return []key{
		{"limits.tokens", &l.Tokens, 0, noLimit, "tokens of one turn"},
		{"limits.model_requests", &l.ModelRequests, 1000, noLimit, "requests to the model in one turn"},
		{"limits.wall_time", &l.WallTime, 0, noLimit, "how long a turn may take, questions included"},
		{"limits.command", &l.Command, "2m", atLeast(time.Millisecond),
			"how long a command may run, unless the model requests up to an hour"},
		{"limits.check", &s.Calls.CheckTime, "10m", atLeast(time.Millisecond), "how long a check or a set-up may take"},
		{"limits.reconnect", &s.Codex.Reconnect, "2m", noLimit,
			"how long a turn of Codex may wait for the network, while nothing else happens"},
		{"limits.tasks", &s.Tasks.Limit, 64, noMost(1), "how many tasks may be unfinished"},
		{"limits.worktrees", &s.Calls.WorktreeBytes, 0, atLeast(0),
			"the bytes that all [worktrees](tasks.md#worktrees) may take before a further one is refused; 0: no limit"},
		{"limits.result", &s.MaxResult, setting.DefaultResult, noMost(4096),
			"the bytes of a result, at least 4096; `codex-show` has the rest"},

		{"sandbox.helper", &s.Sandbox.Helper, unset{[]any{}}, nil,
			"[a program that confines commands](#a-sandbox-of-your-own)"},
		{"sandbox.caches", &s.Sandbox.Caches, unset{}, folders,
			"folders with [copies for each conversation](troubleshooting.md#a-command-does-not-run), in place of the " +
				"usual caches; `[]`: none"},
		{"sandbox.deny_read", &s.Sandbox.DenyRead, unset{[]any{}}, func(reflect.Value) error {
			for _, name := range s.Sandbox.DenyRead {
				if _, err := withheld(name); err != nil {
					return err
				}
			}
			return nil
		}, "files that [nobody reads](#profiles-of-permissions), in each sandbox mode"},
		{"sandbox.strict", &s.Sandbox.Strict, false, nil,
			"under `untrusted`, [asks about more](rules.md#known-to-be-safe)"},

		{"failover.to", &s.Failover.To, unset{[]any{}}, func(reflect.Value) error { return s.Failover.Validate() },
			"[other providers](engines.md#another-provider), in order"},

		{"http.unlocked_arguments", &h.UnlockedArguments, unset{[]any{}}, each(LockedOverHTTP),
			"[locked arguments](http.md#what-a-call-may-choose) that a call may choose"},
		{"http.hosts", &h.Hosts, unset{[]any{}}, addresses("http://", "HOST or HOST:PORT"),
			"host names of the server besides this machine's"},
		{"http.origins", &h.Origins, unset{[]any{}}, addresses("", "SCHEME://HOST or SCHEME://HOST:PORT"),
			"web pages that may use it, in place of this machine's"},
		{"http.drain_timeout", &h.Drain, "30s", nil, "how long running work may continue after a signal"},
		{name: "http.metrics"}, {name: "http.worker_idle"}, {name: "http.url"}, {name: "http.oauth"},
		{name: "http.principals", meaning: "keys of [codex-mcp-gateway](../codexserver/gateway/README.md#keys)"},

		{"notify.command", &s.Notify, unset{[]any{}}, func(reflect.Value) error {
			if len(s.Notify) > 0 && s.Notify[0] == "" {
				return errors.New("want a program")
			}
			if strings.ContainsRune(strings.Join(s.Notify, ""), 0) {
				return errors.New("a word has a NUL")
			}
			return nil
		}, "[a program to run](#notifications) when a person should look"},
	}
}

// The tables of our keys, and those of them that -c may set. notifyTable is a key of Codex if its value is a list.
var (
	ourTables   = []string{"approvals", "calls", "failover", "http", "limits", "sandbox"}
	overridable = []string{"approvals", "calls", "http", "limits"}
)

const notifyTable = "notify"

// set decodes our settings from a merged layer. The defaults come first.
func (s *Settings) set(from layer) error {
	keys := s.keys()
	if err := unknownOfOurs(from, keys); err != nil {
		return err
	}
	for _, k := range keys {
		path := strings.Split(k.name, ".")
		v := At(from, path...)
		if k.into == nil {
			if alone := k.name == "http.metrics" || k.name == "http.oauth" || k.name == "http.principals"; alone &&
				!isEmpty(v) {
				s.HTTP.Gateway = append(s.HTTP.Gateway, k.name) // the others have no effect without these
			}
			continue
		}
		if v == nil {
			v = k.initial
		}
		if _, is := v.(unset); is {
			continue
		}
		to := reflect.ValueOf(k.into).Elem()
		if err := decodeKnown(path, v, to); err != nil {
			return err
		}
		if k.check == nil {
			continue
		}
		if err := k.check(to); err != nil {
			return keyErrorf(path, "%w", err)
		}
	}
	return nil
}

// isEmpty reports whether a value is missing, an empty text, or a table of empty texts.
func isEmpty(value any) bool {
	table, is := value.(layer)
	full := slices.ContainsFunc(slices.Collect(maps.Values(table)), func(v any) bool { return v != "" })
	return is && !full || value == nil || value == ""
}

// unknownOfOurs returns an error for the first key of a layer that is none of ours.
func unknownOfOurs(from layer, keys []key) error {
	known := func(name string) bool { return slices.ContainsFunc(keys, func(k key) bool { return k.name == name }) }
	for _, top := range slices.Sorted(maps.Keys(from)) {
		table, is := from[top].(layer)
		switch {
		case known(top):
			continue
		case !slices.Contains(ourTables, top) && top != notifyTable && len(table) == 0:
			return unknown{nearestOfOurs(JoinKey(top), keys), []string{top}}
		case !is:
			return decodeValue([]string{top}, from[top], reflect.ValueOf(&table).Elem()) // which is no table
		}
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if !known(top + "." + name) {
				return unknown{nearestOfOurs(JoinKey(top, name), keys), []string{top, name}}
			}
		}
	}
	return nil
}

// nearestOfOurs returns the key that a user may have meant by another one, "" for none: one that is a typo away, or
// whose name in its table is.
func nearestOfOurs(name string, keys []key) string {
	meant := map[string]string{}
	for _, table := range ourTables {
		meant[table] = table
	}
	for _, k := range keys {
		meant[k.name], meant[k.name[strings.Index(k.name, ".")+1:]] = k.name, k.name
	}
	names := slices.Sorted(maps.Keys(meant))
	near := text.Nearest(name, slices.Values(names))
	return meant[cmp.Or(near, text.Nearest(name[strings.LastIndex(name, ".")+1:], slices.Values(names)))]
}

func oneOf[W ~string](words ...W) check {
	return func(v reflect.Value) error {
		if !slices.Contains(words, W(v.String())) {
			return fmt.Errorf("%q is not %s", v.String(), text.Or(words))
		}
		return nil
	}
}

// inside fails for rules with outside, which only approvals.allow has.
func inside(v reflect.Value) error {
	if slices.ContainsFunc(v.Interface().([]Rule), func(r Rule) bool { return r.Outside }) {
		return errors.New("outside: is for approvals.allow")
	}
	return nil
}

// each checks the words of a list. Its error names words, but not more.
func each(words []string, more ...string) check {
	return func(v reflect.Value) error {
		for i := range v.Len() {
			if word := v.Index(i).String(); !slices.Contains(words, word) && !slices.Contains(more, word) {
				return fmt.Errorf("%q is not one of %s", word, text.Or(words))
			}
		}
		return nil
	}
}

// folders checks a list of folders, which may be in the home.
func folders(v reflect.Value) error {
	for i := range v.Len() {
		if name := v.Index(i).String(); !filepath.IsAbs(name) && !strings.HasPrefix(name, "~/") {
			return fmt.Errorf("%q: want an absolute path, or one that begins with ~/", name)
		}
	}
	return nil
}

// addresses checks a list of origins, or of hosts, which are origins with this scheme.
func addresses(scheme, want string) check {
	return func(v reflect.Value) error {
		for i := range v.Len() {
			origin := scheme + v.Index(i).String()
			if u, err := url.Parse(origin); err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin {
				return fmt.Errorf("%q: want %s", v.Index(i), want)
			}
		}
		return nil
	}
}

func atLeast[N int | time.Duration](least N) check {
	return func(v reflect.Value) error {
		if v.Int() < int64(least) {
			return fmt.Errorf("want at least %v", least)
		}
		return nil
	}
}

// noLimit converts 0, which means no limit in the file, to -1, which means it in options.
func noLimit(v reflect.Value) error {
	if v.IsZero() {
		v.SetInt(-1)
		return nil
	}
	return atLeast(0)(v)
}

// noMost is atLeast, and converts 0, which means no limit, to a number that nothing reaches.
func noMost(least int) check {
	return func(v reflect.Value) error {
		if v.IsZero() {
			v.SetInt(math.MaxInt32)
		}
		return atLeast(least)(v)
	}
}

// Ours reports whether a name is one of our tables, or a key of ours outside of them and of tables that are Codex's too. An
// engine does not get these as configuration of Codex.
func Ours(name string) bool {
	return slices.Contains(ourTables, name) || name == "shared" || name == "model_tools"
}

// Choosable are the tools that are not always offered. It is read only.
var Choosable = []string{"codex-interrupt", "codex-list", "codex-models", "codex-review", "codex-show", "codex-wait"}

// always are the tools that are always offered.
var always = []string{"codex", "codex-reply"}

// Lockable are the arguments of the tool codex that can be locked: all but the
// prompt. It is read only.
var Lockable = []string{
	"approval-policy", "attempts", "base-instructions", "budget", "check", "compact-prompt", "config", "cwd",
	"developer-instructions", "effort", "images", "include-plan-tool", "model", "models", "output-schema", "profile",
	"sandbox", "web-search", "worktree",
}
