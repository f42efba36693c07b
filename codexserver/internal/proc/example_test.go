//go:build unix

package proc_test

import (
	"context"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
)

func ExamplePool_Run() {
	var processes proc.Pool
	defer processes.Close()
	res, err := processes.Run(context.Background(), proc.Spec{
		Argv:    []string{"sh", "-c", "echo hello; exit 3"},
		Dir:     "/",
		Env:     []string{"PATH=/usr/bin:/bin"},
		Timeout: time.Minute,
	}, nil)
	fmt.Printf("%q %d %v\n", res.Stdout, res.ExitCode, err)
	// Output: "hello\n" 3 <nil>
}
