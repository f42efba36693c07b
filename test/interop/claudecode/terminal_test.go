//go:build claudecode

package claudecode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// terminal is a screen of 120 columns and 50 lines in tmux, in which a program runs.
type terminal struct {
	socket  string
	pid     int    // the program's
	screens string // the folder of kept screens
	taken   int
}

// opened finds the program in a new terminal.
func (t *terminal) opened() error {
	out, err := t.tmux("display-message", "-p", "#{pane_pid}")
	if err == nil {
		t.pid, err = strconv.Atoi(strings.TrimSpace(out))
	}
	return err
}

// close ends the terminal, and waits for the end of the program in it.
func (t *terminal) close() error {
	if _, err := t.tmux("kill-server"); err != nil && !strings.Contains(err.Error(), "no server running") {
		return err
	}
	for range 200 {
		if syscall.Kill(t.pid, 0) != nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return errors.New("the program does not end with its terminal")
}

// kill ends the program and its children at once, without a word.
func (t *terminal) kill() error {
	children, err := exec.Command("pgrep", "-P", strconv.Itoa(t.pid)).Output()
	if err != nil {
		return fmt.Errorf("children of %d: %w", t.pid, err)
	}
	for child := range strings.FieldsSeq(strconv.Itoa(t.pid) + " " + string(children)) {
		pid, parseErr := strconv.Atoi(child)
		if err = errors.Join(err, parseErr); err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return err
}

func (t *terminal) tmux(args ...string) (string, error) {
	out, err := exec.Command("tmux", append([]string{"-S", t.socket, "-f", "/dev/null"}, args...)...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("tmux %s: %w: %s", args[0], err, exit.Stderr)
	}
	return string(out), err
}

// press sends keys by their names in tmux, or a text after -l.
func (t *terminal) press(keys ...string) error {
	_, err := t.tmux(append([]string{"send-keys"}, keys...)...)
	return err
}

func (t *terminal) screen() (string, error) {
	out, err := t.tmux("capture-pane", "-p")
	return strings.TrimRight(out, "\n") + "\n", err
}

// keep writes the screen into the folder.
func (t *terminal) keep() error {
	screen, err := t.screen()
	if err != nil {
		return err
	}
	t.taken++
	return os.WriteFile(filepath.Join(t.screens, fmt.Sprintf("%s-%02d.txt", filepath.Base(t.socket), t.taken)), []byte(screen), 0o600)
}
