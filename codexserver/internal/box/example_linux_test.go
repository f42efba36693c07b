package box_test

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

func Example() {
	s := box.New(box.Options{})
	c, err := s.Confine(protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, "/tmp", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var processes run.Starter
	defer processes.Close()
	res, err := processes.Run(context.Background(), run.Spec{
		Argv: []string{"mktemp", "-d", "/tmp/by-sandbox-example.XXXXXX"}, Dir: "/tmp", Env: []string{"PATH=/usr/bin:/bin"}, Confinement: c,
	}, nil)
	fmt.Println(res.ExitCode != 0, c.Denied(res), err)
	// Output: true true <nil>
}
