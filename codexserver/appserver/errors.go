package appserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os/exec"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

const (
	hintElsewhere = "install it where no command can write, or name another with --codex or CODEX_BIN"
	hintInstall   = "install it with `npm i -g @openai/codex`, or name the program with --codex or CODEX_BIN"
	hintReach     = "the provider cannot be reached: check the network, base_url and HTTPS_PROXY"
	hintLogin     = "not signed in to the model provider, or it refused the credentials: run `codex login`, or " +
		"configure a model provider that needs none"
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

// What Codex's errors mean to this package.
var (
	errConfiguration = errors.New("the configuration cannot be used")
	errUntrusted     = errors.New("the policy untrusted cannot be in config.toml")
	errNoRollout     = errors.New("there is no such conversation")
	errNotLoaded     = errors.New("the thread is not loaded")
	errWriter        = errors.New("another process writes the conversation")
	errNoTurn        = errors.New("the turn has ended")
	errNoGoals       = errors.New("there are no goals")
	errCursor        = errors.New("the cursor cannot be read")
)

// faults are Codex's errors that are told apart, by a part of their text: what they are, nil if only the
// words count, and what to do about each.
var faults = []struct {
	said  string
	is    error
	write string
}{
	{`approval_policy = "untrusted" is no longer supported`, errUntrusted,
		`take approval_policy = "untrusted" out of config.toml and pass approval-policy "untrusted" with the call, ` +
			`or write "on-request"`},
	{"legacy `profile", nil, "pass the profile with the call, or move the table [profiles.NAME] to the file " +
		"NAME.config.toml next to config.toml"},
	{`wire_api = "chat"`, nil, `write wire_api = "responses" for a provider that has it, or use the native engine ` +
		`(--engine native)`},
	{"active writer", errWriter, "another Codex has this conversation open: close it there first"},
	{"CODEX_HOME points to", nil, "make that folder, or unset CODEX_HOME"},
	{"failed to load configuration", errConfiguration, ""},
	{"failed to read configuration", errConfiguration, ""},
	{"invalid config", errConfiguration, ""},
	{"no rollout found", errNoRollout, ""},
	{"thread not loaded", errNoRollout, ""}, // nor in a file
	{"thread not found", errNotLoaded, ""},
	{"no active turn", errNoTurn, ""},
	{"expected active turn", errNoTurn, ""},
	{"goals feature is disabled", errNoGoals, ""},
	{"invalid cursor", errCursor, ""},
}

// faultError is an error of Codex.
type faultError struct {
	text string
	is   []error
}

// Error implements error.
func (e *faultError) Error() string { return e.text }

// Unwrap returns what the error means.
func (e *faultError) Unwrap() []error { return e.is }

// told returns an error with Codex's words, what they mean, and what to do about it.
func told(words string) error {
	e := &faultError{text: words}
	advised := false
	for _, f := range faults {
		if !strings.Contains(words, f.said) {
			continue
		}
		if f.is != nil {
			e.is = append(e.is, f.is)
		}
		if f.write != "" && !advised {
			e.text, advised = words+"; "+f.write, true
		}
	}
	return e
}

// explain returns an error of the app-server with what it means and what to do about it. One about the
// configuration becomes a [*engine.ConfigError]. The end of ctx is none, even if its cause is the end of a connection,
// which is that of the client.
func (c *child) explain(ctx context.Context, err error) error {
	var answer *jsonrpc.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return err
	case errors.Is(err, jsonrpc.ErrClosed):
		return c.obituary()
	case !errors.As(err, &answer):
		return err
	}
	err = told(c.redact(answer.Message))
	if errors.Is(err, errConfiguration) {
		return &engine.ConfigError{Err: err}
	}
	return err
}

// kinds say what each kind of error of a turn means to its caller, and what helps. Of CodexErrorInfoOther, which is
// none of them, Codex's own words alone say it.
var kinds = []struct{ kind, means string }{
	{apptypes.CodexErrorInfoActiveTurnNotSteerable, "the running turn takes no message: wait for its end"},
	{
		apptypes.CodexErrorInfoBadRequest,
		"the provider refuses the request: it may not take an input, or a key of the configuration",
	},
	{
		apptypes.CodexErrorInfoBioPolicy,
		"the provider takes the task for dangerous biology: word it otherwise, or choose another model",
	},
	{
		apptypes.CodexErrorInfoContextWindowExceeded,
		"the conversation is too long for the model: begin a new one with codex",
	},
	{
		apptypes.CodexErrorInfoCyberPolicy,
		"the provider takes the task for dangerous to computers: word it otherwise, or choose another model",
	},
	{
		apptypes.CodexErrorInfoFlexUnavailable,
		"the provider has no room in the service tier flex: try again later, or choose another service_tier",
	},
	{apptypes.CodexErrorInfoHTTPConnectionFailed, hintReach},
	{
		apptypes.CodexErrorInfoInferenceHookDenied,
		"an administrator's hook denied the request: ask who runs the workspace",
	},
	{apptypes.CodexErrorInfoInternalServerError, "the provider failed: try again later"},
	{
		apptypes.CodexErrorInfoMisalignmentPolicyViolation,
		"the provider stopped the model because of what it did: look at what it has changed",
	},
	{
		apptypes.CodexErrorInfoModelNotFound,
		"the provider does not offer the model to this account or version of Codex: codex-models lists what it does",
	},
	{apptypes.CodexErrorInfoPolicyCapacityUnavailable, "the provider cannot check the request now: try again later"},
	{apptypes.CodexErrorInfoRateLimitExceeded, "the provider takes no more requests for now: try again later"},
	{apptypes.CodexErrorInfoResponseStreamConnectionFailed, hintReach},
	{apptypes.CodexErrorInfoResponseStreamDisconnected, "the provider's answer broke off: try again with codex-reply"},
	{
		apptypes.CodexErrorInfoResponseTooManyFailedAttempts,
		"the provider failed each time: try again later with codex-reply",
	},
	{apptypes.CodexErrorInfoSandboxError, "Codex's sandbox failed: codex-mcp doctor tries it"},
	{apptypes.CodexErrorInfoServerOverloaded, "the provider is overloaded: try again later, or choose another model"},
	{
		apptypes.CodexErrorInfoSessionBudgetExceeded,
		"the budget that Codex has for a conversation is spent: begin a new one with codex",
	},
	{
		apptypes.CodexErrorInfoThreadRollbackFailed,
		"Codex could not take turns of the conversation back: begin a new one with codex",
	},
	{
		apptypes.CodexErrorInfoTooManyDenials,
		"too many actions were denied, so Codex ended the turn: look at what was refused",
	},
	{apptypes.CodexErrorInfoUnauthorized, hintLogin},
	{
		apptypes.CodexErrorInfoUsageLimitExceeded,
		"the account's limit is used up: wait until it is over, or use --engine native with a key",
	},
}

// wordsOf returns what Codex says of the error of a turn.
func wordsOf(e *apptypes.TurnError) string {
	if e.AdditionalDetails == "" {
		return e.Message
	}
	return e.Message + ": " + e.AdditionalDetails
}

// textOf returns the error of a turn for people.
func textOf(e *apptypes.TurnError) string {
	text := wordsOf(e)
	kind, status := appclient.ErrorKind(e)
	if kind != "" && kind != apptypes.CodexErrorInfoOther {
		text += " (" + kind + ")"
	}
	if status == http.StatusUnauthorized {
		kind = apptypes.CodexErrorInfoUnauthorized
	}
	for _, known := range kinds {
		if known.kind == kind {
			text += "\n" + known.means
		}
	}
	return text
}
