package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/codexmcp/codexmcp/internal/webaddr"
)

// key is a key of codex-mcp.toml. Each stands here once. The page docs/reference/configuration.md is made from it.
type key struct {
	name    string
	initial any    // the default as the file has it; nil leaves the setting unset
	meaning string // for the page; "" continues the meaning of the key before
	into    any    // a pointer into the settings; nil for a key of codex-mcp-gateway
	then    func() error
	shown   any // for the page, the default that an unset setting has
}

// keys returns the keys of s, grouped by tables.
func (s *Settings) keys() []key {
	a, c, l, mode := &s.Approvals, &s.Calls, &s.Limits, ""
	failures, places := []string{"deny", "abort", "fail-call"}, []setting.Where{setting.WhereClient, setting.WherePage, setting.WhereBoth}
	return []key{
		{"shared", false, "connects clients to [a server that they share](../use/shared.md)", &s.Shared, nil, nil},
		{"model_tools", "auto", "the tools of the native engine's model beside the shell: `files`, `codex` or `auto`", &s.ModelTools,
			oneOf(&s.ModelTools, setting.ToolsAuto, setting.ToolsFiles, setting.ToolsCodex), nil},

		{"approvals.where", "client", "[who is asked](../use/approvals.md#who-is-asked): `client`; `page`, only a page in the browser; `both`", &a.Where,
			oneOf(&a.Where, places...), nil},
		{"approvals.clients", nil, "`approvals.where` for single clients", &a.Clients, func() error {
			for _, name := range slices.Sorted(maps.Keys(a.Clients)) {
				if w := a.Clients[name]; oneOf(&w, places...)() != nil {
					return fmt.Errorf("%s: %q is not %s", JoinKey(name), w, text.Or(places))
				}
			}
			return nil
		}, map[string]any{}},
		{"approvals.timeout", nil, "how long an answer may take. If it is not set, the questions of a call that may become a task wait for an hour", &a.Timeout,
			noLimit(&a.Timeout, 0), "10m"},
		{"approvals.on_unsupported", nil, "[the decision](approvals.md#every-answer-and-what-it-does) if the client cannot be asked: `deny`, `abort` or `fail-call`",
			&a.OnUnsupported, oneOf((*string)(&a.OnUnsupported), failures...), "deny"},
		{"approvals.on_error", nil, "", &a.OnError, oneOf((*string)(&a.OnError), failures...), "deny"},
		{"approvals.on_timeout", nil, "the decision if the client answers with an error, or not in time: `deny`, `abort` or `fail-call`", &a.OnTimeout,
			oneOf((*string)(&a.OnTimeout), failures...), "deny"},
		{"approvals.on_cancel", nil, "the meaning of the answer `cancel`: `abort` or `deny`", &a.OnCancel, oneOf((*string)(&a.OnCancel), "abort", "deny"), "abort"},
		{"approvals.schema", nil, "[the form](approvals.md#the-form): `empty`, `decision`, `auto` or `decision-both`", &a.Schema,
			func() error { return (&elicit.Options{Schema: a.Schema}).Validate() }, "empty"},
		{"approvals.allow", nil, "", &a.Allow, nil, []any{}},
		{"approvals.deny", nil, "[rules](rules.md#rules): beginnings of commands that run, or are denied, without a question", &a.Deny, nil, []any{}},
		{"approvals.ask", nil, "commands that [a person is asked about each time](rules.md#always-ask)", &a.Ask, nil, []any{}},
		{"approvals.log", nil, "the file of [the log](approvals.md#the-log) of questions, decisions and what ran; `\"\"` keeps none. By default it is " +
			"`codex-mcp/approvals.log` in `$CODEX_HOME`; the gateway has none", &a.Log, nil, nil},
		{"approvals.page_port", 0, "the port of that page on this machine; `0` means any free port", &a.PagePort, func() error {
			if a.PagePort < 0 || a.PagePort > 65535 {
				return fmt.Errorf("%d is not a port", a.PagePort)
			}
			return nil
		}, nil},
		{"approvals.page_origin", "", "the origin at which you reach that page [from elsewhere](../use/page.md#on-another-machine)", &a.PageOrigin, func() error {
			if a.PageOrigin == "" {
				return nil
			}
			_, err := webaddr.ParseOrigin(a.PageOrigin)
			if err == nil && a.PagePort == 0 {
				err = errors.New("it needs approvals.page_port, to which the proxy connects")
			}
			return err
		}, nil},

		{"calls.full_access", "ask", "what happens to a call that [asks for more than this configuration](../use/approvals.md#more-than-the-configuration) gives: " +
			"`ask` asks a person, `allow` gives it, `deny` refuses it", &c.FullAccess, func() error { return c.FullAccess.Validate() }, nil},
		{"calls.trusted", false, "lets the argument `config` of a call set every key, not only [the listed ones](#what-a-call-may-set)", &c.TrustedCalls, nil, nil},
		{"calls.locked_arguments", []any{}, "arguments of the tool `codex` that are not offered, and refused in a call", &c.LockedArguments,
			func() error { return within(c.LockedArguments, Lockable, Lockable) }, nil},
		{"calls.tools", Choosable, "the tools to offer in addition to `codex` and `codex-reply`", &c.Tools,
			func() error { return within(c.Tools, Choosable, append(always, Choosable...)) }, nil},
		{"calls.always_load", false, "asks clients that load tools on demand, such as Claude Code, to load these at once", &c.AlwaysLoad, nil, nil},
		{"calls.patience", "auto", "when a call [ends before its turn](turns.md#calls-that-end-before-their-turn): `45` or `\"45s\"`, at least a second; `0` for never; `auto`",
			(*Patience)(&c.Patience), nil, nil},
		{"calls.tasks", "auto", "`auto`: the call of a client that declares tasks becomes a task if it asks or takes longer than `calls.grace`; `never`", &mode, func() error {
			s.Tasks.Never = mode == "never"
			return oneOf(&mode, "auto", "never")()
		}, nil},
		{"calls.grace", "1s", "the time before a call becomes a task", &s.Tasks.Grace, noLimit(&s.Tasks.Grace, 0), nil},
		{"calls.resume", true, "whether the server continues what [a killed server](turns.md#a-server-that-was-killed) did, and keeps what the next one needs",
			&s.Tasks.NoResume, not(&s.Tasks.NoResume), nil},
		{"calls.changes", true, "finds [what a turn changed](wire.md#what-a-turn-changed) by reading its writable folders before and after; with `false` only patches are listed",
			&s.Changes.Off, not(&s.Changes.Off), nil},

		{"limits.tokens", 0, "tokens of one turn, as the provider counts them", &l.Tokens, noLimit(&l.Tokens, 0), nil},
		{"limits.model_requests", 1000, "requests to the model in one turn", &l.ModelRequests, noLimit(&l.ModelRequests, 0), nil},
		{"limits.wall_time", 0, "how long a turn may take, approvals included", &l.WallTime, noLimit(&l.WallTime, 0), nil},
		{"limits.command", "2m", "how long a command may run, at least 1ms. The model may request up to an hour, or this if it is longer", &l.Command,
			atLeast(&l.Command, time.Millisecond), nil},
		{"limits.tasks", 64, "how many tasks may be unfinished at a time, at least 1; one more is refused", &s.Tasks.Limit, atLeast(&s.Tasks.Limit, 1), nil},
		{"limits.result", setting.DefaultResult, "the most bytes of JSON of a result's answer, and of its structured content, at least 4096; " +
			"[the rest](../use/delegating.md#read-what-a-result-left-out)", &c.MaxResult, atLeast(&c.MaxResult, 4096), nil},

		{"sandbox.helper", []any{}, "a program with its arguments that confines commands [instead of this server](#a-sandbox-of-your-own)", &s.Sandbox.Helper, nil, nil},
		{"sandbox.strict", false, "under `untrusted`, asks about [more](rules.md#known-to-be-safe)", &s.Sandbox.Strict, nil, nil},

		{"failover.to", []any{}, "the providers that [answer in place](native.md#another-provider) of one that refuses, in order: " +
			"`[{ provider = \"NAME\", model = \"MODEL\" }]`", &s.Failover.To, func() error { return s.Failover.Resolved().Validate() }, nil},

		{"http.unlocked_arguments", []any{}, "[locked arguments](../operate/http.md#what-a-call-may-choose) that a call over HTTP may choose", &s.HTTP.UnlockedArguments,
			func() error { return within(s.HTTP.UnlockedArguments, LockedOverHTTP, LockedOverHTTP) }, nil},
		{"http.hosts", []any{}, "host names of the server, in addition to those of this machine; a name without a port is valid for every port", &s.HTTP.Hosts, nil, nil},
		{"http.origins", []any{}, "the origins of web pages that may use the server, such as `https://example.com`, in place of pages of this machine", &s.HTTP.Origins, nil, nil},
		{"http.drain_timeout", "30s", "how long running work may continue after a signal to `codex-mcp http` or the gateway; `0` ends it at once", &s.HTTP.Drain, nil, nil},
		{name: "http.metrics"}, {name: "http.worker_idle"}, {name: "http.url"}, {name: "http.oauth"},
		{name: "http.principals", meaning: "keys of [codex-mcp-gateway](../operate/gateway.md#keys)"},

		{"notify.command", []any{}, "[a program to run](#notifications) when a person should look, with its first arguments", &s.Notify, func() error {
			if len(s.Notify) > 0 && s.Notify[0] == "" {
				return errors.New("want a program")
			}
			for _, word := range s.Notify {
				if strings.ContainsRune(word, 0) {
					return errors.New("a word has a NUL")
				}
			}
			return nil
		}, nil},
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
		v := at(from, path)
		if k.into == nil {
			if alone := k.name == "http.metrics" || k.name == "http.oauth" || k.name == "http.principals"; alone && !isEmpty(v) {
				s.HTTP.Gateway = append(s.HTTP.Gateway, k.name) // the others have no effect without these
			}
			continue
		}
		if v == nil {
			v = k.initial
		}
		if list, is := v.([]any); v == nil || is && len(list) == 0 && at(from, path) == nil {
			continue // an empty list is unset
		}
		if err := decodeKnown(path, v, reflect.ValueOf(k.into).Elem()); err != nil {
			return err
		}
		if k.then == nil {
			continue
		}
		if err := k.then(); err != nil {
			return keyErrorf(path, "%w", err)
		}
	}
	return nil
}

// isEmpty reports whether a value is missing, an empty text, or a table of empty texts.
func isEmpty(value any) bool {
	table, is := value.(layer)
	for _, v := range table {
		if v != "" {
			return false
		}
	}
	return is || value == nil || value == ""
}

// unknownOfOurs returns an error for the first key of a layer that is none of ours.
func unknownOfOurs(from layer, keys []key) error {
	known := func(name string) bool { return slices.ContainsFunc(keys, func(k key) bool { return k.name == name }) }
	unknown := func(path ...string) error { return unknownKey(nearestOfOurs(JoinKey(path...), keys), path) }
	for _, top := range slices.Sorted(maps.Keys(from)) {
		table, is := from[top].(layer)
		switch {
		case known(top):
			continue
		case !slices.Contains(ourTables, top) && top != notifyTable && len(table) == 0:
			return unknown(top)
		case !is:
			return keyErrorf([]string{top}, "want a table, have %s", valueWord(reflect.ValueOf(from[top])))
		}
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if !known(top + "." + name) {
				return unknown(top, name)
			}
		}
	}
	return nil
}

// nearestOfOurs returns the key that a user may have meant by another one, "" for none: one that is a typo away, or
// one whose last part has a word of it, which may stand in another table now.
func nearestOfOurs(name string, keys []key) (nearest string) {
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	if near := text.Nearest(name, slices.Values(slices.Concat(names, ourTables))); near != "" {
		return near
	}
	segments := strings.Split(name, ".")
	words, best := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '_' }), 0
	for _, k := range names {
		last, score := k[strings.Index(k, ".")+1:], 0
		for _, word := range words {
			if slices.Contains(strings.Split(last, "_"), word) {
				score += 3
			}
		}
		if last == segments[len(segments)-1] {
			score += 2
		} else if last == segments[0] {
			score++
		}
		if score > best {
			nearest, best = k, score
		}
	}
	return nearest
}

// The checks of values. An error follows the key.

func oneOf[T ~string](p *T, words ...T) func() error {
	return func() error {
		if !slices.Contains(words, *p) {
			return fmt.Errorf("%q is not %s", *p, text.Or(words))
		}
		return nil
	}
}

// within checks the words of a list, and names those of shown.
func within(list, shown, words []string) error {
	for _, word := range list {
		if !slices.Contains(words, word) {
			return fmt.Errorf("%q is not one of %s", word, text.Or(shown))
		}
	}
	return nil
}

func atLeast[T int | int64 | time.Duration](p *T, least T) func() error {
	return func() error {
		if *p < least {
			return fmt.Errorf("want at least %v", least)
		}
		return nil
	}
}

// noLimit converts 0, which means no limit in the file, to -1, which means it in options.
func noLimit[T int | int64 | time.Duration](p *T, least T) func() error {
	return func() error {
		if *p == 0 {
			*p = -1
			return nil
		}
		return atLeast(p, least)()
	}
}

// not turns a switch that is on by default into an option that switches off.
func not(p *bool) func() error {
	return func() error { *p = !*p; return nil }
}

// Ours reports whether a dotted key is one of our settings, outside of tables that are Codex's too. An engine does not
// get these as configuration of Codex.
func Ours(name string) bool {
	segments, err := splitKey(name)
	return err == nil && isOurs(segments[0])
}

// isOurs reports whether a word is one of our tables, or a key outside of them.
func isOurs(word string) bool {
	return slices.Contains(ourTables, word) || word == "shared" || word == "model_tools"
}

// Choosable are the tools that are not always offered. It is read only.
var Choosable = []string{"codex-interrupt", "codex-list", "codex-models", "codex-review", "codex-show", "codex-wait"}

// always are the tools that are always offered.
var always = []string{"codex", "codex-reply"}

// Lockable are the arguments of the tool codex that can be locked: all but the
// prompt. It is read only.
var Lockable = []string{"approval-policy", "base-instructions", "budget", "compact-prompt", "config", "cwd", "developer-instructions", "effort", "images", "include-plan-tool", "model", "output-schema", "profile", "sandbox", "web-search", "worktree"}
