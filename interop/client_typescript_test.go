package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
)

// typescript is the client of the official TypeScript SDK, in
// typescript/client.mjs.
type typescript struct{}

func (typescript) release(t *testing.T) string { return npmRelease(t, "@modelcontextprotocol/sdk") }

func (typescript) cannot(string) string { return "" }

func (typescript) play(ctx context.Context, s script, enough <-chan struct{}) (report, error) {
	encoded, err := json.Marshal(s)
	if err != nil {
		return report{}, err
	}
	cmd := exec.CommandContext(ctx, node(), "client.mjs", string(encoded))
	cmd.Dir = "typescript"
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return report{}, err
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return report{}, err
	}
	over := make(chan struct{})
	told := make(chan struct{})
	go func() {
		defer close(told)
		select {
		case <-enough:
			_, _ = stdin.Write([]byte("enough\n")) // a client that is gone says so by its exit status
		case <-over:
		}
	}()
	err = cmd.Wait()
	close(over)
	<-told
	if err != nil {
		return report{}, fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	var r report
	return r, json.Unmarshal(stdout.Bytes(), &r)
}
