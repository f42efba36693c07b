package run

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The server sends an order in two frames, the words of the command and its confinement.
// Then it sends single bytes.
const (
	askToEnd = 't'
	endNow   = 'e'
)

// The launcher sends reports.
const (
	reportFailed  = 'f' // nothing was started; the value is the system's error, and the text follows to the end
	reportStarted = 'p' // the value is the PID of the first process
	reportExited  = 's' // the first process ended; the value is its status
	reportGone    = 'g' // all processes have ended
)

// maxFrame is the size of the longest frame in bytes. Every system limits a command's words
// and environment to less.
const maxFrame = 64 << 20

// fixedWords is how many words of an order are before the arguments: the program, its folder,
// the number of descriptors, whether the first one is the folder, and the number of arguments.
const fixedWords = 5

// frames returns the order as the server sends it, and its descriptors.
func (o Order) frames() ([]byte, []*os.File, error) {
	cmd := o.Cmd
	if len(cmd.Args) == 0 {
		return nil, nil, errors.New("the command is empty")
	}
	if a := cmd.SysProcAttr; a != nil && !reflect.DeepEqual(a, sessionAttr()) || len(cmd.ExtraFiles) > 0 {
		return nil, nil, errors.New("a launcher does not support these process attributes or more descriptors")
	}
	for _, stream := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		if _, ok := stream.(*os.File); stream != nil && !ok {
			return nil, nil, fmt.Errorf("a launcher needs files as standard streams, not a %T", stream)
		}
	}
	files := o.Files
	if o.Folder != nil {
		files = append([]*os.File{o.Folder}, files...)
	}
	words := []string{cmd.Path, cmd.Dir, strconv.Itoa(len(files)), strconv.FormatBool(o.Folder != nil), strconv.Itoa(len(cmd.Args))}
	words = append(append(words, cmd.Args...), cmd.Env...)
	for _, word := range words {
		if strings.ContainsRune(word, 0) {
			return nil, nil, errors.New("a word of the command contains a NUL byte")
		}
	}
	text := strings.Join(words, "\x00")
	if len(text) > maxFrame {
		return nil, nil, unix.E2BIG
	}
	message := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	message = append(message, text...)
	message = binary.BigEndian.AppendUint32(message, uint32(len(o.Confinement)))
	return append(message, o.Confinement...), files, nil
}

// readOrder reads an order. Its descriptors begin at first, and its streams are those of this
// process.
func readOrder(r io.Reader, first int) (*exec.Cmd, []byte, []*os.File, error) {
	text, err := readFrame(r)
	if err != nil {
		return nil, nil, nil, err
	}
	confinement, err := readFrame(r)
	if err != nil {
		return nil, nil, nil, err
	}
	words := strings.Split(string(text), "\x00")
	if len(words) < fixedWords {
		return nil, nil, nil, errors.New("launcher: the order is too short")
	}
	count, err1 := strconv.Atoi(words[2])
	inFolder, err2 := strconv.ParseBool(words[3])
	args, err3 := strconv.Atoi(words[4])
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, nil, nil, fmt.Errorf("launcher: %w", err)
	}
	if rest := len(words) - fixedWords; count < 0 || inFolder && count == 0 || args < 0 || args > rest {
		return nil, nil, nil, errors.New("launcher: the order has too few words or descriptors")
	}
	files := make([]*os.File, count)
	for i := range files {
		files[i] = os.NewFile(uintptr(first+i), "ordered")
	}
	cmd := &exec.Cmd{
		Path: words[0], Dir: words[1], Args: words[fixedWords:][:args], Env: words[fixedWords+args:],
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}, // in the launcher's session, so that the server finds it without the launcher
		Stdin:       os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}
	if inFolder {
		cmd.Dir = fmt.Sprintf("/proc/self/fd/%d", files[0].Fd())
		files = files[1:]
	}
	return cmd, confinement, files, nil
}

func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxFrame {
		return nil, fmt.Errorf("the frame has %d bytes, at most %d are allowed", size, maxFrame)
	}
	frame := make([]byte, size)
	_, err := io.ReadFull(r, frame)
	return frame, err
}

// report is what a launcher says about its command.
type report struct {
	kind  byte
	value uint32
}

func (r report) send(w io.Writer) error {
	_, err := w.Write(binary.BigEndian.AppendUint32([]byte{r.kind}, r.value))
	return err
}

func readReport(r io.Reader) (report, error) {
	var b [5]byte
	_, err := io.ReadFull(r, b[:])
	return report{kind: b[0], value: binary.BigEndian.Uint32(b[1:])}, err
}

// launchError is an error that a launcher reported.
type launchError struct {
	text  string
	errno syscall.Errno
}

func (e *launchError) Error() string { return e.text }

// Unwrap returns the system's error, if there was one.
func (e *launchError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}
