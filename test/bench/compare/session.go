package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// play plays one session with the server: "connect", "plain" with a call in which nothing is asked, or "approval" with one
// in which the client allows a command. It fails if the command did not run.
func play(ctx context.Context, kind string, argv []string, folder string) error {
	turn := providertest.Turn{Text: []string{"done"}}
	if kind == "approval" {
		turn = providertest.Call(providertest.ToolCall{Name: "shell", Arguments: `{"command":["touch","made"]}`})
	}
	argv = slices.Concat(argv, []string{"--cd", folder, "-s", "workspace-write", "-a", "untrusted"})
	s, err := start(ctx, argv, providertest.Turn{Match: "function_call_output", Text: []string{"done"}}, turn)
	if err != nil {
		return err
	}
	defer s.close()
	switch kind {
	case "connect":
	case "plain", "approval":
		if _, err := s.run(1, nil); err != nil {
			return err
		}
	default:
		return fmt.Errorf("no session %q: there are connect, plain and approval", kind)
	}
	_, made := os.Stat(filepath.Join(folder, "made"))
	if kind != "approval" {
		made = nil
	}
	_, err = s.end()
	return errors.Join(made, err)
}
