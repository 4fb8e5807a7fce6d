package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	functions "github.com/pawl-lock/pawl/functions/settings"
	"github.com/pawl-lock/pawl/localtest/gateway"
)

// What the tokens of AUTH=jwt say.
const (
	issuer   = "https://pawl.localhost"
	audience = "pawl"
)

// authorizer returns what AUTH asks for, and which kind the function is told.
// The function knows no "none": there the gateway vouches for everyone.
func (s settings) authorizer() (functions.Auth, gateway.Authorizer, error) {
	switch auth := s.get("AUTH", "none"); auth {
	case "none":
		return functions.IAM, gateway.Anyone, nil
	case "iam":
		key := gateway.Key{
			ID:           s.getenv("AWS_ACCESS_KEY_ID"),
			Secret:       s.getenv("AWS_SECRET_ACCESS_KEY"),
			SessionToken: s.getenv("AWS_SESSION_TOKEN"),
			UserARN:      "arn:aws:iam::123456789012:user/local",
		}
		if key.ID == "" || key.Secret == "" {
			return "", nil, errors.New("AUTH=iam checks signatures, and has no key to check them with: " +
				"make one up, and set it here and for those who call: AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=secret")
		}
		return functions.IAM, gateway.IAM(s.get("AWS_REGION", "us-east-1"), key), nil
	case "jwt":
		key, err := s.key()
		if err != nil {
			return "", nil, err
		}
		return functions.JWT, gateway.JWT(issuer, []string{audience}, &key.PublicKey), nil
	default:
		return "", nil, fmt.Errorf("AUTH is %q, want none, iam or jwt", auth)
	}
}

// printToken prints a token that is good for an hour.
func (s settings) printToken(w io.Writer, scopes string) error {
	key, err := s.key()
	if err != nil {
		return err
	}
	now := time.Now()
	token, err := gateway.SignJWT(key, map[string]any{
		"iss":   issuer,
		"aud":   audience,
		"sub":   s.get("USER", "local"),
		"scope": scopes,
		"iat":   now.Unix(),
		"exp":   now.Add(time.Hour).Unix(),
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, token)
	return err
}

// key reads the key in the file JWT_KEY. It makes one if there is no file, so
// that tokens stay good when the server starts again.
func (s settings) key() (*rsa.PrivateKey, error) {
	file := s.getenv("JWT_KEY")
	if file == "" {
		return nil, errors.New("AUTH=jwt needs JWT_KEY, the file for an RSA key")
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return newKey(file)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("JWT_KEY: %s is not a PEM file", file)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("JWT_KEY: %s: %w", file, err)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("JWT_KEY: %s has no RSA key", file)
	}
	return key, nil
}

func newKey(file string) (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}
