// Command chatbot takes tasks from a chat of Telegram and asks its questions there, so that you
// approve commands from a phone. It starts codex-mcp, in the folder to work in:
//
//	TELEGRAM_TOKEN=123:abc go run ./examples/chatbot -user 12345678
//
// Telegram's @BotFather makes a bot and its token, and @userinfobot says your id. Only that user, in
// the private chat with the bot, may hand over tasks and press buttons. A message continues the
// conversation; /new begins another one, and /stop ends the task.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/client"
)

func main() {
	user := flag.Int64("user", 0, "the `id` of the user who may hand over tasks and decide")
	base := flag.String("api", "https://api.telegram.org", "the `URL` of the Bot API")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := start(ctx, *base, *user, flag.Args()); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "chatbot:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, base string, user int64, args []string) error {
	token, err := takeToken()
	if err != nil {
		return err
	}
	if user <= 0 {
		return errors.New("-user is missing: without it no one could decide")
	}
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	cmd := exec.Command("codex-mcp", append([]string{"-c", "approvals.schema=decision"}, args...)...) // questions name all decisions
	cmd.Stderr = os.Stderr
	b := newBot(&telegram{base: base, token: token, http: httpClient()}, user, cwd, log.Default())
	c, err := client.Start(ctx, &client.Options{Command: cmd, Ask: b.ask})
	if err != nil {
		return err
	}
	return errors.Join(b.run(ctx, c), c.Close())
}

var validToken = regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]+$`)

// takeToken takes the token out of the environment, which commands inherit.
func takeToken() (string, error) {
	token := os.Getenv("TELEGRAM_TOKEN")
	if err := os.Unsetenv("TELEGRAM_TOKEN"); err != nil {
		return "", err
	}
	if !validToken.MatchString(token) { // the message must not repeat it
		return "", errors.New("TELEGRAM_TOKEN is not a token of a bot, such as 123:abc")
	}
	return token, nil
}

// httpClient returns a client that waits longer than the server of a poll, and follows no redirect:
// the next server would learn the token.
func httpClient() *http.Client {
	return &http.Client{
		Timeout:       poll + 10*time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
