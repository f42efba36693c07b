//go:build unix

package run_test

import (
	"context"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

func ExampleStarter_Run() {
	var processes run.Starter
	defer processes.Close()
	res, err := processes.Run(context.Background(), run.Spec{
		Argv:    []string{"sh", "-c", "echo hello; exit 3"},
		Dir:     "/",
		Env:     []string{"PATH=/usr/bin:/bin"},
		Timeout: time.Minute,
	}, nil)
	fmt.Printf("%q %d %v\n", res.Stdout, res.ExitCode, err)
	// Output: "hello\n" 3 <nil>
}
