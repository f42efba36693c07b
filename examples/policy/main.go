// Command policy is codex-mcp with an approval policy in code. The policy decides which
// commands run in one folder without a question, and which do not run at all. The user is
// asked about all others. A command that the policy allows runs in the sandbox. If the sandbox
// stops it, the user is asked.
//
// With a command it prints the policy's decision:
//
//	go run ./examples/policy go test ./...
//	go run ./examples/policy rm -rf /etc
//	go run ./examples/policy sh -c 'git fetch && make'
//
// Without a command it is an MCP server that uses the configuration of the native engine.
// Configure it in a client like codex-mcp:
//
//	go run ./examples/policy -folder /path/to/project
//
// It ends when its input ends, or on Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func main() {
	native.Main() // does not return if the engine started this process to run commands
	folder := flag.String("folder", ".", "the `folder` that the policy is about")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *folder, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "policy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder string, command []string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return err
	}
	p := policy{folder}
	if len(command) > 0 {
		fmt.Println(p.explain(ctx, command))
		return nil
	}
	engine, err := native.New(&native.Options{Overrides: map[string]any{"approval_policy": "untrusted"}})
	if err != nil {
		return err
	}
	server := codexserver.New(engine, &codexserver.Options{Rules: approval.Rules{Decide: p.decide}})
	return errors.Join(server.Serve(ctx, jsonrpc.Stdio()), engine.Close())
}

// explain returns what the policy does with a command.
func (p policy) explain(ctx context.Context, command []string) string {
	out, decided := p.decide(ctx, &approval.Request{
		Subject: approval.Command{Command: command, Cwd: p.folder, Confinable: true},
	})
	switch {
	case !decided:
		return "the user is asked"
	case out.Decision == elicit.Approved:
		return "runs in the sandbox without a question"
	}
	return "does not run; the model reads: " + out.ForModel()
}

// plain matches a part of a script that a shell splits into words without any expansion.
var plain = regexp.MustCompile(`^[\w./:=@,+ -]*\w[\w./:=@,+ -]*$`)

// split returns the commands of a shell script that joins them with && and |. ok is false
// for any other script: the user is asked.
func split(argv []string) (commands [][]string, ok bool) {
	if len(argv) == 0 {
		return nil, false
	}
	if !slices.Contains([]string{"sh", "bash", "zsh", "dash"}, filepath.Base(argv[0])) {
		return [][]string{argv}, true
	}
	if len(argv) != 3 || argv[1] != "-c" && argv[1] != "-lc" {
		return nil, false
	}
	for _, part := range regexp.MustCompile(`&&|\|`).Split(argv[2], -1) {
		if !plain.MatchString(part) {
			return nil, false
		}
		commands = append(commands, strings.Fields(part))
	}
	return commands, true
}
