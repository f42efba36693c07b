package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
)

// goOn makes the names with which a conversation ran those of the configuration, unless the command line chooses others, and
// returns the ones that count. Its file has nothing else that counts here, whoever wrote it. It resolves the task's "last".
func (c *configuration) goOn(ctx context.Context, task *terminal.Task) (names protocol.Names, err error) {
	about, old, err := native.NamesOf(ctx, c.home, task.Resume)
	if err != nil {
		return names, err
	}
	if task.Resume == native.Last {
		task.About = append(task.About, "continuing: "+terminal.Row(about.Preview))
	}
	task.Resume = about.ConversationID
	profile, is := c.overrides["profile"]
	another := is && profile != old.Profile // which has a model of its own
	for _, one := range []struct {
		key, old string
		name     *string
	}{
		{"profile", old.Profile, &names.Profile}, {"model_provider", old.Provider, &names.Provider},
		{"model", old.Model, &names.Model}, {"model_reasoning_effort", string(old.Effort), (*string)(&names.Effort)},
	} {
		switch given, is := c.overrides[one.key]; {
		case one.old == "":
		case is && given != one.old:
			task.About = append(task.About, terminal.Row(fmt.Sprintf("%s %v in place of the conversation's %s", one.key, given, one.old)))
		case !is && !another:
			c.overrides[one.key], *one.name = one.old, one.old
		}
	}
	if known, err := config.Profiles(c.home); names.Profile != "" && err == nil && !slices.Contains(known, names.Profile) {
		return names, gone("profile", names.Profile, "-p NAME")
	}
	return names, nil
}

// still returns an error if the native engine does not have a provider of a conversation any more. Codex says it itself.
func (c *configuration) still(engine string, names protocol.Names) error {
	if engine != "native" || names.Provider == "" {
		return nil
	}
	_, err := config.Load(config.Layers{Home: c.home, Overrides: c.overrides})
	if errors.Is(err, config.ErrMissing) {
		return gone("model_provider", names.Provider, "-c model_provider=NAME")
	}
	return nil // the turn says what else is wrong
}

func gone(key, name, flag string) error {
	return fmt.Errorf("the conversation ran with the %s %q, which the configuration does not have now: define it again, or choose another with %s", key, name, flag)
}

// repeated returns the command and the flags that were given, as a shell takes them, to go on with a conversation, which has its
// folder, policy and sandbox. It leaves out the values that may be secrets, and returns their keys.
func (o *options) repeated() (line string, left []string) {
	words := []string{o.name, "ask"}
	if o.engine != "auto" {
		words = append(words, "--engine", o.engine)
	}
	if o.codex != "" {
		words = append(words, "--codex", o.codex)
	}
	if o.strict {
		words = append(words, "--strict-config")
	}
	short := map[string]string{"model": "-m", "profile": "-p"}
	for _, override := range o.overrides {
		key, value, err := config.ParseOverride(override)
		text, isText := value.(string)
		switch {
		case err != nil:
		case secret(key, value):
			left = append(left, key)
		case short[key] != "" && isText:
			words = append(words, short[key], text)
		default:
			words = append(words, "-c", override)
		}
	}
	return elicit.ShowCommand(words), left
}

// variable matches the name of an environment variable, and no key.
var variable = lazyregexp.Regexp{Text: `^[A-Z][A-Z0-9_]*$`}

// hides are parts of keys below which a text may be a secret.
var hides = []string{"key", "token", "secret", "password", "passwd", "credential", "auth", "header", "cookie", "query_params", "env", "environment", "args", "command", "notify"}

// secret reports whether a value of the configuration may have one: by the key, or as a part of an address.
func secret(key string, value any) bool {
	switch v := value.(type) {
	case string:
		part := strings.ToLower(key)
		if strings.HasSuffix(part, "env_key") || strings.HasSuffix(part, "_env_var") {
			return !variable.Get().MatchString(v)
		}
		if strings.Contains(v, "://") {
			at, err := url.Parse(v)
			if err != nil || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
				return true
			}
		}
		return slices.ContainsFunc(hides, func(word string) bool { return strings.Contains(part, word) })
	case map[string]any:
		for name, member := range v {
			if secret(key+"."+name, member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return secret(key, one) })
	}
	return false
}
