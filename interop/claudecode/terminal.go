package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// terminal is a screen of 120 columns and 50 lines in tmux, in which a program runs.
type terminal struct {
	socket string
	pid    int    // the program's
	shots  string // the folder of kept screens
	taken  *int
}

// openTerminal starts argv in a terminal of its own.
func openTerminal(ctx context.Context, socket, shots string, taken *int, dir string, env, argv []string) (*terminal, error) {
	t := &terminal{socket: socket, shots: shots, taken: taken}
	args := []string{"new-session", "-d", "-x", "120", "-y", "50", "-c", dir, "--", "env", "-i"}
	args = append(append(args, env...), argv...)
	if _, err := t.tmux(ctx, args...); err != nil {
		return nil, err
	}
	out, err := t.tmux(ctx, "display-message", "-p", "#{pane_pid}")
	if err != nil {
		return nil, err
	}
	t.pid, err = strconv.Atoi(strings.TrimSpace(out))
	return t, err
}

// close ends the terminal, and waits for the end of the program in it.
func (t *terminal) close() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), 20*time.Second, errors.New("the program does not end with its terminal"))
	defer cancel()
	if _, err := t.tmux(ctx, "kill-server"); err != nil && !strings.Contains(err.Error(), "no server running") {
		return err
	}
	for syscall.Kill(t.pid, 0) == nil {
		if err := pause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// kill ends the program and its children at once, without a word.
func (t *terminal) kill() error {
	children, err := exec.Command("pgrep", "-P", strconv.Itoa(t.pid)).Output()
	if err != nil {
		return fmt.Errorf("children of %d: %w", t.pid, err)
	}
	err = syscall.Kill(t.pid, syscall.SIGKILL)
	for child := range strings.FieldsSeq(string(children)) {
		pid, parseErr := strconv.Atoi(child)
		if err = errors.Join(err, parseErr); err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return err
}

func (t *terminal) tmux(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-S", t.socket, "-f", "/dev/null"}, args...)...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("tmux %s: %w", args[0], err)
	}
	return string(out), nil
}

// press sends keys by their names in tmux.
func (t *terminal) press(ctx context.Context, keys ...string) error {
	_, err := t.tmux(ctx, append([]string{"send-keys"}, keys...)...)
	return err
}

// write types a text.
func (t *terminal) write(ctx context.Context, text string) error {
	_, err := t.tmux(ctx, "send-keys", "-l", "--", text)
	return err
}

func (t *terminal) screen(ctx context.Context) (string, error) {
	out, err := t.tmux(ctx, "capture-pane", "-p")
	return strings.TrimRight(out, "\n") + "\n", err
}

// await waits until the screen matches, and keeps it. It fails when the program
// has ended, or with ctx.
func (t *terminal) await(ctx context.Context, pattern string) (string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", err
	}
	for last := ""; ; {
		now, err := t.screen(ctx)
		if err != nil && ctx.Err() == nil {
			return "", fmt.Errorf("waiting for %q on the screen: the program has ended: %w; last screen:\n%s", pattern, err, dense(last))
		}
		if err == nil {
			last = now
			if re.MatchString(now) {
				return now, t.keep(now)
			}
		}
		if pause(ctx) != nil {
			return "", errors.Join(fmt.Errorf("no %q on the screen:\n%s", pattern, dense(last)), t.keep(last))
		}
	}
}

// keep writes a screen into the folder.
func (t *terminal) keep(screen string) error {
	*t.taken++
	return os.WriteFile(filepath.Join(t.shots, fmt.Sprintf("screen-%02d.txt", *t.taken)), []byte(screen), 0o600)
}

// pause lets a tenth of a second pass, or fails with ctx.
func pause(ctx context.Context) error {
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var empty = regexp.MustCompile(`\n{3,}`)

// dense leaves out most of a screen's empty lines.
func dense(screen string) string { return empty.ReplaceAllString(screen, "\n\n") }
