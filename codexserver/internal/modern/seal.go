package modern

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/internal/regularfile"
)

// Seal encrypts and authenticates what clients keep for the server (AES-256-GCM).
// Its key stands in a file, so that a state opens after a restart. A key that
// cannot be kept lives in memory. It is safe for concurrent use.
type Seal struct {
	// File is where the key stands, "" for nowhere. It is made on first use.
	File   string
	Logger *slog.Logger

	once sync.Once
	aead cipher.AEAD
	err  error
}

const keySize = 32

// purpose separates the states of this key from whatever else it may seal one day.
var purpose = []byte("codex-mcp request state 1")

var errSeal = errors.New("the seal does not open")

func (s *Seal) seal(plain []byte) (string, error) {
	s.once.Do(s.load)
	if s.err != nil {
		return "", s.err
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, purpose)), nil
}

func (s *Seal) open(sealed string) ([]byte, error) {
	s.once.Do(s.load)
	if s.err != nil {
		return nil, s.err
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || strings.ContainsAny(sealed, "\r\n") { // which the decoder skips
		return nil, errSeal
	}
	plain, err := s.aead.Open(nil, nil, b, purpose)
	if err != nil {
		return nil, errSeal
	}
	return plain, nil
}

func (s *Seal) load() {
	key, err := s.key()
	if err != nil {
		if s.File != "" {
			s.Logger.Warn("the key for states is kept in memory", "error", err)
		}
		key = make([]byte, keySize)
		rand.Read(key)
	}
	block, err := aes.NewCipher(key)
	if err == nil {
		s.aead, err = cipher.NewGCMWithRandomNonce(block)
	}
	s.err = err
}

// key reads the key, or makes one.
func (s *Seal) key() ([]byte, error) {
	if s.File == "" {
		return nil, errors.New("no file")
	}
	key, err := s.read()
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := os.MkdirAll(filepath.Dir(s.File), 0o700); err != nil {
		return nil, err
	}
	key = make([]byte, keySize)
	rand.Read(key)
	// The file appears with its content: another process may look at this moment.
	tmp, err := os.CreateTemp(filepath.Dir(s.File), ".key-*") // its mode is 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(key)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(tmp.Name(), s.File); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return s.read() // that of whoever came first
}

// read reads the key. It refuses a link, and a file that others can read or write.
func (s *Seal) read() ([]byte, error) {
	info, err := os.Lstat(s.File)
	if err != nil {
		return nil, err
	}
	if err := private(info); err != nil {
		return nil, fmt.Errorf("%s: %w", s.File, err)
	}
	key, err := regularfile.Read(s.File, keySize)
	if err != nil {
		return nil, err
	}
	if len(key) != keySize {
		return nil, fmt.Errorf("%s: want %d bytes, found %d", s.File, keySize, len(key))
	}
	return key, nil
}
