package native

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

const (
	keyTimeout = 5 * time.Second // of a program that prints a key, unless its timeout_ms says otherwise
	maxKey     = 16 << 10        // bytes of a key
)

// keyPrinter returns the function that runs the user's program for a provider's key, or nil. It runs outside the sandbox,
// where no command can write it, with the core of the environment. What it prints is in no error and in no log.
func (e *Engine) keyPrinter(a *config.ProviderAuth) func(context.Context) (string, error) {
	if a == nil {
		return nil
	}
	return func(ctx context.Context) (string, error) {
		env, path := e.programs.Environ(run.EnvPolicy{Inherit: run.InheritCore,
			IgnoreDefaultExcludes: true}.Environ(e.options.Environ))
		dir := cmp.Or(a.Cwd, append(e.homes(), e.options.CodexHome)[0])
		program, err := e.programs.Find(a.Command, dir, path)
		if err != nil {
			return "", fmt.Errorf("auth.command, which prints the provider's key: %w", err)
		}
		timeout := keyTimeout
		if a.TimeoutMS != nil && *a.TimeoutMS > 0 {
			timeout = time.Duration(min(*a.TimeoutMS, time.Hour.Milliseconds())) * time.Millisecond
		}
		result, err := e.processes.Run(ctx,
			run.Spec{Argv: append([]string{program}, a.Args...), Dir: dir, Env: env, Timeout: timeout}, nil)
		key, fault := strings.TrimSpace(result.Stdout), ""
		switch {
		case err != nil:
			return "", fmt.Errorf("auth.command, which prints the provider's key: %w", err)
		case result.TimedOut:
			fault = fmt.Sprintf("did not end within %v (auth.timeout_ms)", timeout)
		case result.ExitCode != 0:
			fault = fmt.Sprintf("failed with exit code %d; run it in a terminal to see why", result.ExitCode)
		case key == "":
			fault = "printed nothing"
		case len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
			fault = "printed more than a key"
		default:
			return key, nil
		}
		return "", fmt.Errorf("auth.command, %s, which prints the provider's key, %s", a.Command, fault)
	}
}
