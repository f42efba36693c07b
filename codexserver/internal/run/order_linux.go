package run

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The server sends an order, and then single bytes.
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

// maxOrder is the size of the longest order in bytes. Every system limits a command's words
// and environment to less.
const maxOrder = 64 << 20

// ordered is an order as a launcher reads it. The streams, the folder and the descriptors are
// those of the launcher.
type ordered struct {
	path, confinement string
	files             int
	args, env         []string
}

// fixedWords is how many words of an order are before the arguments: the program, the confinement,
// the number of descriptors, and the number of arguments.
const fixedWords = 4

// message returns the order as the server sends it.
func (o Order) message() ([]byte, error) {
	cmd := o.Cmd
	if len(cmd.Args) == 0 {
		return nil, errors.New("the command is empty")
	}
	if a := cmd.SysProcAttr; a != nil && !reflect.DeepEqual(a, sessionAttr()) || len(cmd.ExtraFiles) > 0 {
		return nil, errors.New("a launcher does not support these process attributes or more descriptors")
	}
	for _, stream := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		if _, ok := stream.(*os.File); stream != nil && !ok {
			return nil, fmt.Errorf("a launcher needs files as standard streams, not a %T", stream)
		}
	}
	words := []string{cmd.Path, o.Confinement, strconv.Itoa(len(o.Files)), strconv.Itoa(len(cmd.Args))}
	words = append(append(words, cmd.Args...), cmd.Env...)
	for _, word := range words {
		if strings.ContainsRune(word, 0) {
			return nil, errors.New("a word of the command contains a NUL byte")
		}
	}
	text := strings.Join(words, "\x00")
	if len(text) > maxOrder {
		return nil, unix.E2BIG
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...), nil
}

// readOrder reads an order.
func readOrder(r io.Reader) (o ordered, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return o, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxOrder {
		return o, fmt.Errorf("the order has %d bytes, at most %d are allowed", size, maxOrder)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return o, err
	}
	words := strings.Split(string(text), "\x00")
	if len(words) < fixedWords {
		return o, errors.New("the order is too short")
	}
	files, err1 := strconv.Atoi(words[2])
	args, err2 := strconv.Atoi(words[3])
	if err := errors.Join(err1, err2); err != nil {
		return o, fmt.Errorf("the order: %w", err)
	}
	if files < 0 || args < 0 || args > len(words)-fixedWords {
		return o, errors.New("the order has too few words or descriptors")
	}
	return ordered{words[0], words[1], files, words[fixedWords:][:args], words[fixedWords+args:]}, nil
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
