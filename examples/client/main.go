// Command client is an editor's client of the conversation API. It starts a server as its
// child, holds conversations with the model, shows the events, and asks you the server's
// questions. The server is any command:
//
//	go run ./examples/client
//	go run ./examples/client codex-mcp -engine native
//
// What you type is a message to the model, except for
//
//	/list        the conversations so far, newest first
//	/resume N    continue number N of that list
//	/archive N   remove number N from the list
//
// and the answer to a question: yes, no, or stop. The program ends when its input ends
// (Ctrl-D), or on Ctrl-C.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

func main() {
	flag.Parse()
	cmd := exec.Command(cmp.Or(flag.Arg(0), "codex-mcp"), flag.Args()[min(1, flag.NArg()):]...)
	cmd.Stderr = os.Stderr
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, cmd, os.Stdin, os.Stdout); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

// run starts the server and executes the lines of in. Several goroutines write to out.
func run(ctx context.Context, cmd *exec.Cmd, in io.Reader, out io.Writer) error {
	child, err := jsonrpc.Command(cmd, 0)
	if err != nil {
		return err
	}
	c := &client{out: out, lines: readLines(in), ended: make(chan struct{}, 1)}
	c.peer = jsonrpc.NewPeer(child, c.mux(), &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	ran := make(chan error, 1)
	go func() { ran <- c.peer.Run(ctx) }()
	err = c.initialize(ctx)
	for err == nil {
		fmt.Fprint(out, "> ")
		line, ok := c.read(ctx)
		if !ok {
			break
		}
		err = c.execute(ctx, strings.Fields(line), line)
		var no *jsonrpc.Error
		if errors.As(err, &no) { // an error answer, not a broken connection
			fmt.Fprintln(out, "error:", no.Message)
			err = nil
		}
	}
	_ = c.peer.Close() // also ends the child
	return cmp.Or(<-ran, err)
}

// execute runs one line.
func (c *client) execute(ctx context.Context, words []string, line string) error {
	switch {
	case len(words) == 0:
		return nil
	case words[0] == "/list":
		return c.list(ctx)
	case words[0] != "/resume" && words[0] != "/archive":
		return c.say(ctx, line)
	}
	for i, s := range c.listed {
		switch {
		case len(words) != 2 || words[1] != fmt.Sprint(i+1):
		case words[0] == "/resume":
			return c.resume(ctx, s)
		default:
			return c.archive(ctx, s)
		}
	}
	fmt.Fprintln(c.out, words[0], "takes a number of /list")
	return nil
}

// readLines reads in the background, so that a caller can wait for a line and for the end of
// the connection at the same time. The goroutine ends with r: a read from a terminal cannot
// be cancelled.
func readLines(r io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines
}
