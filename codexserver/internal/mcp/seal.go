package mcp

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Seal encrypts and authenticates states that clients keep for the server (AES-256-GCM).
// Its key is in a file, so that the server can open a state after a restart. If the file
// cannot be used, the key is only in memory. It is safe for concurrent use.
type Seal struct {
	// File is the path of the key's file. It is created on first use. "" keeps the key in
	// memory.
	File   string
	Logger *slog.Logger

	once sync.Once
	aead cipher.AEAD
	err  error
}

const keySize = 32

// purpose separates states from other data that the key may seal in the future.
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
	if err != nil || strings.ContainsAny(sealed, "\r\n") { // the decoder ignores line breaks
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
	key, err := safefile.LoadSecret(s.File, keySize, func() []byte {
		key := make([]byte, keySize)
		rand.Read(key)
		return key
	})
	if err == nil && len(key) != keySize {
		err = fmt.Errorf("%s: want %d bytes, found %d", s.File, keySize, len(key))
	}
	return key, err
}
