package appserver

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

const (
	hintInstall = "install it with `npm i -g @openai/codex`, or name the program with --codex or CODEX_BIN"
	hintUpdate  = "update it with `npm i -g @openai/codex@latest`"
	hintLogin   = "not signed in to the model provider, or it refused the credentials: run `codex login`, or configure a model provider that needs none"
)

// NotFoundError says that there is no codex program.
type NotFoundError struct {
	// Path is what was looked for.
	Path string
	// Err is what the search said.
	Err error
}

// Error implements error.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("codex not found: %v; %s", e.Err, hintInstall)
}

// Unwrap returns the reason.
func (e *NotFoundError) Unwrap() error { return e.Err }

// TooOldError says that the codex program is older than the bridge can drive.
type TooOldError struct {
	// Found and Needed are versions such as "0.59.0".
	Found, Needed string
}

// Error implements error.
func (e *TooOldError) Error() string {
	return fmt.Sprintf("codex %s is too old: %s or newer is needed; %s", e.Found, e.Needed, hintUpdate)
}

func tooOld(v version) error { return &TooOldError{Found: v.String(), Needed: oldest.String()} }

// ErrNotSignedIn says that the model provider wants credentials and there are none.
var ErrNotSignedIn = errors.New(hintLogin)

// faults are what Codex refuses in a configuration, by what it says then, with
// what to write instead.
var faults = []struct{ said, write string }{
	{`approval_policy = "untrusted" is no longer supported`, `take approval_policy = "untrusted" out of config.toml and pass approval-policy "untrusted" with the call, or write "on-request"`},
	{"legacy `profile", "pass the profile with the call, or move the table [profiles.NAME] to the file NAME.config.toml next to config.toml"},
	{`wire_api = "chat"`, `write wire_api = "responses" for a provider that has it, or use the native engine (--engine native)`},
	{"active writer", "another Codex has this conversation open; close it there first"},
	{"CODEX_HOME points to", "make that folder, or unset CODEX_HOME"},
}

// explain adds what to do to an error of the app-server, and distinguishes errors of
// the configuration from others.
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
	text := redact(answer.Message)
	err = errors.New(advise(text))
	if strings.Contains(text, "failed to load configuration") || strings.Contains(text, "failed to read configuration") || strings.Contains(text, "invalid config") {
		return &engine.ConfigError{Err: err}
	}
	return err
}

// advise appends what to write instead of what was refused.
func advise(text string) string {
	for _, f := range faults {
		if strings.Contains(text, f.said) {
			return text + "; " + f.write
		}
	}
	return text
}

// obituary says how the app-server ended. The connection may have ended before the
// process has, which is waited for.
func (c *child) obituary() error {
	limit := time.NewTimer(obituaryLimit)
	defer limit.Stop()
	select {
	case <-c.gone:
	case <-limit.C:
	}
	c.mu.Lock()
	err, at := c.lostErr, c.lostAt
	c.mu.Unlock()
	var late *timeoutError
	switch {
	case errors.Is(err, errClosed):
		return errClosed
	case errors.As(err, &late):
		return fmt.Errorf("%w and was ended", err)
	}
	text := "codex app-server has ended"
	var exit interface { // an exec.ExitError, or an exitError
		error
		ExitCode() int
	}
	if errors.As(err, &exit) {
		text += " (" + exit.Error() + ")"
	}
	if said := c.stderr.last(at); said != "" {
		text += ": " + said
	}
	return errors.New(advise(text))
}

// refused reports whether the app-server refused with words that contain said.
func refused(err error, said string) bool {
	var answer *jsonrpc.Error
	return errors.As(err, &answer) && strings.Contains(answer.Message, said)
}
