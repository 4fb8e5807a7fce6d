// Package grpcfence carries fencing tokens over gRPC, as package fence does over
// HTTP: from the context of the caller into the context of the handler, and a
// refusal back to the caller as a [fence.StaleError] or [fence.OtherLockError].
//
// It is a package of its own because gRPC is heavy. It carries a token and
// checks nothing but its form: refusing a stale one is for the guard beside the
// data.
package grpcfence

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// key is the metadata that carries the token, with the same value as
// [fence.Header].
var key = strings.ToLower(fence.Header)

// A Server has the interceptors for the side that writes.
type Server struct {
	// Required says that a call without a token fails with InvalidArgument. A
	// call with nonsense for a token does so in any case.
	Required bool
}

// Unary puts the token of a call into the context of its handler, and turns a
// refusal that the handler returns into FailedPrecondition.
func (s Server) Unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, err := s.receive(ctx)
	if err != nil {
		return nil, err
	}
	res, err := handler(ctx, req)
	return res, toStatus(err)
}

// Stream is Unary for streams.
func (s Server) Stream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, err := s.receive(stream.Context())
	if err != nil {
		return err
	}
	return toStatus(handler(srv, serverStream{stream, ctx}))
}

type serverStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s serverStream) Context() context.Context { return s.ctx }

func (s Server) receive(ctx context.Context) (context.Context, error) {
	switch values := metadata.ValueFromIncomingContext(ctx, key); {
	case len(values) == 1:
		lock, token, err := fence.ParseHeader(values[0])
		if err != nil {
			return ctx, status.Error(codes.InvalidArgument, err.Error())
		}
		return fence.NewContext(ctx, lock, token), nil
	case len(values) > 1:
		return ctx, status.Error(codes.InvalidArgument, key+" is given twice")
	case s.Required:
		return ctx, status.Error(codes.InvalidArgument, key+" is missing")
	}
	return ctx, nil
}

// UnaryClient sends the token of the context along, and turns the status of a
// refusal into a [fence.StaleError] or [fence.OtherLockError].
func UnaryClient(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx, err := send(ctx)
	if err != nil {
		return err
	}
	return fromStatus(invoke(ctx, method, req, reply, cc, opts...))
}

// StreamClient is UnaryClient for streams. A refusal comes from
// receiving.
func StreamClient(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	ctx, err := send(ctx)
	if err != nil {
		return nil, err
	}
	stream, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, fromStatus(err)
	}
	return clientStream{stream}, nil
}

type clientStream struct{ grpc.ClientStream }

func (s clientStream) RecvMsg(m any) error { return fromStatus(s.ClientStream.RecvMsg(m)) }

func send(ctx context.Context) (context.Context, error) {
	lock, token := fence.FromContext(ctx)
	if token == 0 {
		return ctx, nil
	}
	value, err := fence.FormatHeader(lock, token)
	if err != nil {
		return nil, err
	}
	return metadata.AppendToOutgoingContext(ctx, key, value), nil
}

// How a refusal looks in the details of a status.
const (
	reasonStale = "STALE_TOKEN"
	reasonOther = "OTHER_LOCK"
	domain      = "pawl"
)

func toStatus(err error) error {
	var stale *fence.StaleError
	var other *fence.OtherLockError
	info := &errdetails.ErrorInfo{Domain: domain}
	switch {
	case errors.As(err, &stale):
		info.Reason = reasonStale
		info.Metadata = map[string]string{
			"lock": stale.Lock, "token": stale.Token.String(), "seen": stale.Seen.String(),
			"resource": stale.Resource, "not_applied": strconv.FormatBool(stale.NotApplied),
		}
		err = stale
	case errors.As(err, &other):
		info.Reason = reasonOther
		info.Metadata = map[string]string{
			"lock": other.Lock, "bound": other.Bound,
			"resource": other.Resource, "not_applied": strconv.FormatBool(other.NotApplied),
		}
		err = other
	default:
		return err
	}
	st, detailErr := status.New(codes.FailedPrecondition, err.Error()).WithDetails(info)
	if detailErr != nil {
		return status.Error(codes.FailedPrecondition, err.Error()) // a resource that is not UTF-8
	}
	return st.Err()
}

// A refusal is one that is still a gRPC status, for whoever looks for one.
type refusal struct {
	error
	status *status.Status
}

func (e refusal) GRPCStatus() *status.Status { return e.status }
func (e refusal) Unwrap() error              { return e.error }

func fromStatus(err error) error {
	if err == nil {
		return nil
	}
	st, ok := status.FromError(err)
	if !ok || st.Code() != codes.FailedPrecondition {
		return err
	}
	for _, d := range st.Details() {
		info, ok := d.(*errdetails.ErrorInfo)
		if !ok || info.Domain != domain {
			continue
		}
		m := info.Metadata
		switch info.Reason {
		case reasonStale:
			token, err1 := fence.Parse(m["token"])
			seen, err2 := fence.Parse(m["seen"])
			if err1 == nil && err2 == nil {
				return refusal{&fence.StaleError{Lock: m["lock"], Token: token, Seen: seen, Resource: m["resource"],
					NotApplied: m["not_applied"] == "true"}, st}
			}
		case reasonOther:
			return refusal{&fence.OtherLockError{Lock: m["lock"], Bound: m["bound"], Resource: m["resource"],
				NotApplied: m["not_applied"] == "true"}, st}
		}
	}
	return err
}
