package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/spf13/pflag"
)

// goOn makes the names with which a conversation ran those of the configuration, unless the command line chooses others. Its
// file has nothing else that counts here, whoever wrote it. It resolves the task's "last".
func (c *configuration) goOn(ctx context.Context, task *terminal.Task) error {
	about, old, err := native.NamesOf(ctx, c.home, task.Resume)
	if err != nil {
		return err
	}
	if task.Resume == native.Last {
		task.About = append(task.About, "continuing: "+terminal.Row(about.Preview))
	}
	task.Resume = about.ConversationID
	profile, is := c.overrides["profile"]
	another := is && profile != old.Profile // which has a model of its own
	names := []string{old.Profile, old.Provider, old.Model, string(old.Effort)}
	for i, key := range []string{"profile", "model_provider", "model", "model_reasoning_effort"} {
		name := names[i]
		switch given, is := c.overrides[key]; {
		case name == "":
		case is && given != name:
			task.About = append(task.About, terminal.Row(fmt.Sprintf("%s %v in place of the conversation's %s", key,
				given, name)))
		case !is && !another:
			c.overrides[key] = name
		}
	}
	return nil
}

// ready returns why no turn of the native engine can begin, such as without a key or without the profile or the provider of a
// conversation. With failover a turn finds it out. Codex says it itself.
func (c *configuration) ready(ctx context.Context, e *choice, task *terminal.Task) error {
	if e.name != "native" {
		return nil
	}
	err := engine.TraitsOf(e.Engine).CanContinue(ctx)
	switch {
	case task.Resume != "" && errors.Is(err, config.ErrMissing):
		// No -c need be wrong.
		return fmt.Errorf("%v: define again what the conversation ran with, or choose another with -p NAME or "+
			"-c model_provider=NAME", err)
	case len(c.settings.Failover.To) > 0:
		return nil
	}
	return err
}

// repeated returns the command and the flags that were given, as a shell takes them, to go on with a conversation, which has its
// folder. It leaves out what is not known to be public, and returns which flags that are. A check is a line for a shell, which may have
// keys in it.
func (a *askOptions) repeated(flags *pflag.FlagSet) (line string, left []string) {
	words := []string{a.name, "ask"}
	_ = flags.ParseAll(a.line, func(f *pflag.Flag, value string) error { // which was parsed before
		switch {
		case f.Name == "resume", f.Name == "cd", f.Name == "image":
		case f.Name == "check":
			left = append(left, "--check")
		case f.Name == "config" && !isPublic(value):
			key, _, _ := strings.Cut(value, "=")
			left = append(left, "-c "+key)
		case f.Shorthand != "":
			words = append(words, "-"+f.Shorthand, value)
		case f.NoOptDefVal != "":
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name, value)
		}
		return nil
	})
	return elicit.ShowCommand(words), left
}

// isPublic reports whether KEY=VALUE is known to hold no secret.
func isPublic(value string) bool {
	key, _, _ := strings.Cut(value, "=")
	return public.Get().MatchString(value) && key != "calls" && key != "calls.check"
}

// public matches KEY=VALUE that holds no secret: by the key, or a name of a variable or an address that has the form of one.
var public = lazyregexp.Regexp{Text: `(?s)^((model|profile|model_provider|model_(reasoning_\w+|verbosity|` +
	`context_window|auto_compact_token_limit)|` +
	`approval_policy|sandbox_mode|web_search|(sandbox_workspace_write|approvals|calls|limits|features)(\.[^=]+)?)=.*|` +
	`model_providers\.[^.=]+\.((name|wire_api|requires_openai_auth|request_max_retries|stream_max_retries|` +
	`stream_idle_timeout_ms)=.*|` +
	`env_key="?[A-Z][A-Z0-9_]*"?|base_url="?https?://[^@?#"]*"?))$`}
