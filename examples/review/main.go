// Command review reviews the changes of a branch and prints a comment for its pull request, in
// Markdown. It starts codex-mcp, which can change nothing in a review and asks nothing:
//
//	go run ./examples/review -base main
//
// The exit status is 0 for a review, 1 if it is not done, 2 for a wrong use, and 3 if it could not begin.
//
// review.yml next to it is a workflow that does so for every pull request.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/elicit"
)

// maxComment is less than what GitHub takes, in bytes.
const maxComment = 60_000

func main() {
	base := flag.String("base", "main", "the `branch` that the pull request is for")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := start(ctx, *base, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "review:", err)
		os.Exit(status(ctx, err))
	}
}

// errUndone is in the error of a review that began.
var errUndone = errors.New("the review is not done")

// status returns an exit status, as codex-mcp ask has it: package flag ends with 2 for a wrong use.
func status(ctx context.Context, err error) int {
	switch {
	case ctx.Err() != nil:
		return 130
	case errors.Is(err, errUndone):
		return 1
	}
	return 3
}

func start(ctx context.Context, base string, args []string) error {
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	cmd := exec.Command("codex-mcp", args...)
	cmd.Stderr = os.Stderr
	c, err := client.Start(ctx, &client.Options{Command: cmd})
	if err != nil {
		return err
	}
	return errors.Join(run(ctx, c, cwd, base, os.Stdout), c.Close())
}

// run reviews what differs in a folder from where it left the branch base.
func run(ctx context.Context, c *client.Client, cwd, base string, out io.Writer) error {
	r, err := c.Review(ctx, client.Review{Target: "base", Branch: base, Cwd: cwd})
	if err == nil && r.Usage != nil && r.Err() != nil {
		err = fmt.Errorf("%w: %w", errUndone, r.Err())
	}
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, comment(&r))
	return err
}

var fences = regexp.MustCompile("`{3,}")

// comment returns the findings as a comment. Who wrote the pull request may have told the model
// what to say, so all of its words are in a block of code: they mention nobody and load no image.
func comment(r *client.Result) string {
	var b strings.Builder
	for _, f := range r.Findings {
		if f.OutsideDiff {
			continue // it is not about the change, or is made up
		}
		if f.Priority != nil {
			fmt.Fprintf(&b, "P%d ", *f.Priority)
		}
		fmt.Fprintf(&b, "%s:%d %s\n", f.Path, f.StartLine, f.Title)
		for line := range strings.Lines(f.Body) {
			b.WriteString("    " + strings.TrimRight(line, "\r\n") + "\n")
		}
	}
	if r.Verdict != nil {
		b.WriteString(r.Verdict.Explanation + "\n")
	}
	for _, note := range r.Notes { // for example that the model saw only a part
		b.WriteString(note + "\n")
	}
	text, cut := elicit.ShowText(b.String()), ""
	if len(text) > maxComment {
		end := maxComment
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text, cut = text[:end]+"\n", "The review is longer.\n"
	}
	fence := "```"
	for _, used := range fences.FindAllString(text, -1) {
		fence = max(fence, used+"`") // the longer one: all characters are the same
	}
	return fmt.Sprintf("A model reviewed this. Check what it says before you act on it.\n\n%stext\n%s%s\n%s", fence,
		text, fence, cut)
}
