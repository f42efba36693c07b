package appserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

const (
	hintElsewhere = "install it where no command can write, or name another with --codex or CODEX_BIN"
	hintInstall   = "install it with `npm i -g @openai/codex`, or name the program with --codex or CODEX_BIN"
	hintRoom      = "begin a new conversation with codex"
	hintLogin     = "not signed in to the model provider, or it refused the credentials: run `codex login`, or configure a model provider that needs none"
)

// NotFoundError means that there is no codex program, or none that may be started.
type NotFoundError struct {
	// Path is the path or name that was searched for.
	Path string
	// Err is the error of the search.
	Err error
}

// Error implements error.
func (e *NotFoundError) Error() string {
	if _, refused := errors.AsType[*box.ProgramError](e.Err); refused {
		return fmt.Sprintf("a codex was found, but %v; %s", e.Err, hintElsewhere)
	}
	if errors.Is(e.Err, errOwn) {
		return fmt.Sprintf("%v; %s", e.Err, hintInstall)
	}
	reason := e.Err
	if search, ok := errors.AsType[*exec.Error](e.Err); ok && errors.Is(search, exec.ErrNotFound) {
		reason = fmt.Errorf("%s is not in the PATH", search.Name)
	} else if file, is := errors.AsType[*fs.PathError](e.Err); ok && is {
		reason = fmt.Errorf("%s: %w", search.Name, file.Err)
	} else if ok {
		reason = fmt.Errorf("%s: %w", search.Name, search.Err)
	}
	return fmt.Sprintf("codex not found: %v; %s", reason, hintInstall)
}

// Unwrap returns the reason.
func (e *NotFoundError) Unwrap() error { return e.Err }

// TooOldError means that the bridge cannot drive a codex program that old.
type TooOldError = appclient.TooOldError

// ErrNotSignedIn means that the model provider needs credentials and Codex has none.
var ErrNotSignedIn = errors.New(hintLogin)

// faults are Codex's errors about a configuration, by a part of their text, with what to
// do about each.
var faults = []struct{ said, write string }{
	{`approval_policy = "untrusted" is no longer supported`, `take approval_policy = "untrusted" out of config.toml and pass approval-policy "untrusted" with the call, or write "on-request"`},
	{"legacy `profile", "pass the profile with the call, or move the table [profiles.NAME] to the file NAME.config.toml next to config.toml"},
	{`wire_api = "chat"`, `write wire_api = "responses" for a provider that has it, or use the native engine (--engine native)`},
	{"active writer", "another Codex has this conversation open: close it there first"},
	{"CODEX_HOME points to", "make that folder, or unset CODEX_HOME"},
}

// explain adds what to do to an error of the app-server. An error about the configuration
// becomes a [*engine.ConfigError].
func (c *child) explain(err error) error {
	var answer *jsonrpc.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jsonrpc.ErrClosed):
		return c.obituary()
	case !errors.As(err, &answer):
		return err
	}
	text := c.redact(answer.Message)
	err = errors.New(advise(text))
	if strings.Contains(text, "failed to load configuration") || strings.Contains(text, "failed to read configuration") || strings.Contains(text, "invalid config") {
		return &engine.ConfigError{Err: err}
	}
	return err
}

// advise appends what to do about a known fault.
func advise(text string) string {
	for _, f := range faults {
		if strings.Contains(text, f.said) {
			return text + "; " + f.write
		}
	}
	return text
}

// refused reports whether err is an answer of the app-server that contains said.
func refused(err error, said string) bool {
	var answer *jsonrpc.Error
	return errors.As(err, &answer) && strings.Contains(answer.Message, said)
}
