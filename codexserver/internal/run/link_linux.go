package run

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"syscall"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// request is a message of the server: a command to start, or to ask the running one to end,
// or to kill it.
type request struct {
	Start     *start `json:"start,omitempty"`
	Terminate bool   `json:"terminate,omitempty"`
	End       bool   `json:"end,omitempty"`
}

// start is a command. Its words are bytes, since they may not be valid UTF-8. The message
// has descriptors in this order: standard input, output, error and the folder, if they are
// set, then the extra files, then those of the confinement.
type start struct {
	Path        []byte   `json:"path"`
	Args        [][]byte `json:"args"`
	Env         [][]byte `json:"env"`
	Dir         []byte   `json:"dir"`
	Attr        attr     `json:"attr"`
	Stdin       bool     `json:"stdin"`
	Stdout      bool     `json:"stdout"`
	Stderr      bool     `json:"stderr"`
	Folder      bool     `json:"folder"`
	Extra       int      `json:"extra"`
	Confinement []byte   `json:"confinement"`
}

// attr is the part of [syscall.SysProcAttr] that a keeper supports.
type attr struct {
	Setsid      bool      `json:"setsid"`
	Cloneflags  uintptr   `json:"cloneflags"`
	AmbientCaps []uintptr `json:"ambient_caps"`
}

// attrOf fails when a has an attribute that a keeper does not support.
func attrOf(a *syscall.SysProcAttr) (attr, error) {
	if a == nil {
		return attr{}, nil
	}
	known := attr{Setsid: a.Setsid, Cloneflags: a.Cloneflags, AmbientCaps: a.AmbientCaps}
	if !reflect.DeepEqual(known.sys(), a) {
		return attr{}, errors.New("a keeper does not support all of these process attributes")
	}
	return known, nil
}

func (a attr) sys() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: a.Setsid, Cloneflags: a.Cloneflags, AmbientCaps: a.AmbientCaps}
}

// reply is a message of a keeper.
type reply struct {
	PID    int                 `json:"pid,omitzero"`     // the command was started
	Error  *failure            `json:"error,omitempty"`  // it was not started
	Status *syscall.WaitStatus `json:"status,omitempty"` // its first process ended
	Gone   bool                `json:"gone,omitzero"`    // all its processes ended
}

type failure struct {
	Text  string        `json:"text"`
	Errno syscall.Errno `json:"errno,omitzero"`
}

// maxFrame is the size of the longest message in bytes. Every system limits a command's
// words and environment to less.
const maxFrame = 64 << 20

// maxFiles is how many descriptors a message may have. The kernel allows 253.
const maxFiles = 200

// link is one end of the socket between the server and a keeper. A message is the length
// of a JSON text in four bytes, and the text.
type link struct {
	conn *net.UnixConn
	oob  []byte
}

func newLink(conn *net.UnixConn) *link {
	return &link{conn: conn, oob: make([]byte, unix.CmsgSpace(4*maxFiles))}
}

// linkOf takes over the socket fd.
func linkOf(fd int) (*link, error) {
	f := os.NewFile(uintptr(fd), "keeper")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("the descriptor is not a local socket")
	}
	return newLink(conn), nil
}

// send sends a message. One goroutine at a time sends: the keeper's only one, and in the server who
// starts the command, then who holds [Process].mu.
func (l *link) send(message any, files ...*os.File) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(body) > maxFrame || len(files) > maxFiles {
		return unix.E2BIG
	}
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		oob = unix.UnixRights(fds...)
	}
	n, _, err := l.conn.WriteMsgUnix(frame, oob, nil)
	if err == nil && n < len(frame) {
		_, err = l.conn.Write(frame[n:])
	}
	return err
}

// receive reads one message. The error is [io.EOF] when the other end has closed.
func (l *link) receive(message any) (files []*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	var head [4]byte
	for read := 0; read < len(head); {
		n, oobn, flags, _, err := l.conn.ReadMsgUnix(head[read:], l.oob)
		if err != nil {
			return files, err
		}
		got, err := filesOf(l.oob[:oobn])
		files = append(files, got...)
		if err != nil {
			return files, err
		}
		if flags&unix.MSG_CTRUNC != 0 {
			return files, errors.New("the message has too many descriptors")
		}
		read += n
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxFrame {
		return files, fmt.Errorf("the message has %d bytes, at most %d are allowed", size, maxFrame)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(l.conn, body); err != nil {
		return files, err
	}
	return files, json.Unmarshal(body, message)
}

// filesOf returns the descriptors of a control message.
func filesOf(oob []byte) (files []*os.File, err error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

// remoteError is an error that a keeper reported.
type remoteError struct {
	text  string
	errno syscall.Errno
}

func (e *remoteError) Error() string { return e.text }

// Unwrap returns the system's error, if there was one.
func (e *remoteError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}
