package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/pflag"
)

// options are what the server, and every other command that runs an engine, takes from the command line. A command with
// more has a struct of its own around them.
type options struct {
	name string   // the program's name; codex when a link with that name started it
	line []string // the command line, nil for none
	run  runner   // the command

	overrides []string // key=value, in order
	engine    string
	codex     string
	log       slog.Level
	logs      bool   // the command line has --log
	logFormat string // text or json; "" means text
	trace     string
	strict    bool
	version   bool
	shared    *bool    // as --shared says, nil without it
	folder    string   // the folder of conversations that do not name one
	folders   []string // the folders in which calls may work; nil means all
	turns     int      // the number of concurrent turns; 0 means no limit

	announcing announcing

	warnings []string // about flags of codex without effect
	refusals []string // about flags of codex that end the start
}

// The values of --approvals, --log and --log-format.
var (
	places     = []string{"client", "page", "both"}
	levels     = []string{"debug", "info", "warn", "error"}
	logFormats = []string{"text", "json"}
)

// newFlags returns a set of flags that several commands have.
func newFlags() *pflag.FlagSet {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.SortFlags = false // each command sorts its own
	return fs
}

// commonFlags returns the flags of every command that runs an engine.
func (o *options) commonFlags() *pflag.FlagSet {
	fs := newFlags()
	override := func(s string) error { o.overrides = append(o.overrides, s); return nil }
	fs.FuncP("config", "c", "set a configuration `KEY=VALUE`; repeatable, keys may be dotted, values are TOML or "+
		"plain text", override)
	fs.Func("enable", "the same as -c features.`NAME`=true", o.feature("true"))
	fs.Func("disable", "the same as -c features.`NAME`=false", o.feature("false"))
	fs.BoolVar(&o.strict, "strict-config", false, "fail if config.toml has an unknown key (native engine)")
	o.engine = "auto"
	fs.Func("engine", "the `ENGINE` that runs the tasks: auto, codex or native; default: auto",
		oneOf(engines, func(s string) error { o.engine = s; return nil }))
	fs.StringVar(&o.codex, "codex", "", "the `PROGRAM` codex; default: $CODEX_BIN, else codex in the PATH")
	o.log = level()
	fs.Func("log", "the lowest `LEVEL` that is logged to standard error: debug, info, warn or error; default: warn",
		o.logLevel)
	fs.Func("log-format", "the `FORMAT` of log lines: text or json; default: text",
		oneOf(logFormats, func(s string) error { o.logFormat = s; return nil }))
	fs.Func("approvals", "the `PLACE` where approvals are asked for: client, page (only a page in the browser; ask "+
		"also asks in the terminal) or both; default: client",
		oneOf(places, func(s string) error { return override("approvals.where=" + s) }))
	fs.StringVar(&o.trace, "trace", "", "append every message to this `FILE`, without secrets")
	fs.BoolVarP(&o.version, "version", "V", false, "print the version and exit")
	o.foreignFlags(fs)
	return fs
}

// settingFlags returns the flags that are short for overrides, as in codex. Of a flag and
// of -c with its key, the last one counts.
func (o *options) settingFlags() *pflag.FlagSet {
	fs := newFlags()
	set := func(key string) func(string) error {
		return func(v string) error { o.set(key, v); return nil }
	}
	policies, modes := protocol.ApprovalPolicies(), protocol.SandboxModes()
	fs.FuncP("model", "m", "the `NAME` of the model, as -c model", set("model"))
	fs.FuncP("profile", "p", "the `NAME` of a profile in config.toml, as -c profile", set("profile"))
	fs.FuncP("sandbox", "s", "the `MODE` that says what commands may touch, as -c sandbox_mode: "+text.Or(modes),
		oneOf(modes, set("sandbox_mode")))
	fs.FuncP("ask-for-approval", "a", "the `POLICY` that says when to ask before a command runs, as -c "+
		"approval_policy: "+text.Or(policies), oneOf(policies, set("approval_policy")))
	fs.StringVarP(&o.folder, "cd", "C", "",
		"the `FOLDER` to work in, unless a call names one; default: the client's, else the current one")
	return fs
}

// serverFlags returns the flags of a server on standard input and output.
func (o *options) serverFlags() *pflag.FlagSet {
	fs := newFlags()
	fs.BoolFunc("shared", "connect the client to a server of this user that all clients share, and start it if it "+
		"does not run",
		func(s string) error {
			shared, err := strconv.ParseBool(s)
			o.shared = &shared
			return err
		})
	return fs
}

// set overrides a key with a text, which is never read as TOML.
func (o *options) set(key, text string) {
	quoted, _ := jsontext.AppendQuote(nil, text) // bytes that are not UTF-8 become U+FFFD
	o.overrides = append(o.overrides, key+"="+string(quoted))
}

var featureName = lazyregexp.Regexp{Text: `^[A-Za-z0-9_-]+$`}

func (o *options) feature(value string) func(string) error {
	return func(name string) error {
		if !featureName.Get().MatchString(name) {
			return errors.New("want the name of a feature: letters, digits, - and _")
		}
		o.overrides = append(o.overrides, "features."+name+"="+value)
		return nil
	}
}

func (o *options) logLevel(s string) error {
	o.logs = true
	return oneOf(levels, func(s string) error { return o.log.UnmarshalText([]byte(s)) })(strings.ToLower(s))
}

// level returns the level in RUST_LOG, which the old server read, if it is a single word.
func level() slog.Level {
	l := slog.LevelWarn
	if err := l.UnmarshalText([]byte(os.Getenv("RUST_LOG"))); err != nil {
		return slog.LevelWarn
	}
	return l
}

// existingFolder makes the path of a folder absolute.
func existingFolder(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return "", fmt.Errorf("--cd: %s is not a folder", path)
	}
	return path, nil
}

func oneOf[W ~string](words []W, then func(string) error) func(string) error {
	return func(s string) error {
		if !slices.Contains(words, W(s)) {
			return errors.New("want " + text.Or(words))
		}
		return then(s)
	}
}
