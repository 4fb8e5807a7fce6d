package grpcfence_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pawl-lock/pawl/pkg/fence"
	"github.com/pawl-lock/pawl/pkg/fence/grpcfence"
)

const lock = `payments/é "quoted"`

var (
	stale = &fence.StaleError{Lock: lock, Token: 17, Seen: 18, Resource: "orders, row 42"}
	other = &fence.OtherLockError{Lock: lock, Bound: "payments/e", Resource: "orders, row 42"}
)

// write is what both kinds of handler do.
func write(ctx context.Context) error {
	h := fence.HoldingFrom(ctx)
	got, token := h.Lock, h.Token
	switch {
	case token == 0:
		return nil
	case got != lock:
		return status.Errorf(codes.Internal, "the lock arrived as %q", got)
	case token == 16: // another goroutine's, so a copy
		return fence.Settled(&fence.OtherLockError{Lock: lock, Bound: other.Bound, Resource: other.Resource})
	case token < 18: // what the guard knows of the last attempt says nothing of those before
		return fence.Settled(&fence.StaleError{Lock: lock, Token: 17, Seen: 18, Resource: stale.Resource})
	}
	return nil
}

// dial starts a server with a unary and a streaming call and connects to it.
func dial(t *testing.T, s grpcfence.Server) *grpc.ClientConn {
	t.Helper()
	l := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.UnaryInterceptor(s.Unary), grpc.StreamInterceptor(s.Stream))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Write", Handler: func(_ any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			if err := decode(new(emptypb.Empty)); err != nil {
				return nil, err
			}
			return intercept(ctx, nil, &grpc.UnaryServerInfo{}, func(ctx context.Context, _ any) (any, error) {
				return new(emptypb.Empty), write(ctx)
			})
		}}},
		Streams: []grpc.StreamDesc{{StreamName: "Stream", ServerStreams: true, ClientStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
			return write(s.Context())
		}}},
	}, nil)
	go func() { _ = server.Serve(l) }() // it ends with Stop
	t.Cleanup(server.Stop)
	c, err := grpc.NewClient("passthrough:///test",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(grpcfence.UnaryClient), grpc.WithStreamInterceptor(grpcfence.StreamClient))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func unary(ctx context.Context, c *grpc.ClientConn) error {
	return c.Invoke(ctx, "/test/Write", new(emptypb.Empty), new(emptypb.Empty))
}

func stream(ctx context.Context, c *grpc.ClientConn) error {
	s, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/test/Stream")
	if err != nil {
		return err
	}
	if err := s.RecvMsg(new(emptypb.Empty)); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

var calls = map[string]func(context.Context, *grpc.ClientConn) error{"unary": unary, "stream": stream}

func TestATokenTravelsOverGRPCAndAStaleWriteComesBack(t *testing.T) {
	c := dial(t, grpcfence.Server{Required: true})
	for name, call := range calls {
		if err := call(fence.NewContext(t.Context(), fence.Holding{Lock: lock, Token: 18}), c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		err := call(fence.NewContext(t.Context(), fence.Holding{Lock: lock, Token: 17}), c)
		var got *fence.StaleError
		if !errors.As(err, &got) || *got != *stale || !errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: got %v, want %v", name, err, stale)
		}
		if status.Code(err) != codes.FailedPrecondition {
			t.Errorf("%s: the status is %v", name, status.Code(err))
		}
		err = call(fence.NewContext(t.Context(), fence.Holding{Lock: lock, Token: 16}), c)
		var bound *fence.OtherLockError
		if !errors.As(err, &bound) || *bound != *other || !errors.Is(err, fence.ErrOtherLock) {
			t.Errorf("%s: got %v, want %v", name, err, other)
		}
	}
}

func TestATokenThatIsNoneGoesNoFurther(t *testing.T) {
	for name, call := range calls {
		required, optional := dial(t, grpcfence.Server{Required: true}), dial(t, grpcfence.Server{})
		if err := call(t.Context(), required); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s, without a token: got %v", name, err)
		}
		if err := call(t.Context(), optional); err != nil {
			t.Errorf("%s, without a token that is not required: got %v", name, err)
		}
		if err := call(fence.NewContext(t.Context(), fence.Holding{Lock: lock, Token: fence.Max + 1}), optional); !errors.Is(err, fence.ErrInvalid) {
			t.Errorf("%s, with too large a token: got %v", name, err)
		}
		for _, nobody := range []fence.Holding{{}, {Lock: lock}} {
			if err := call(fence.NewContext(t.Context(), nobody), optional); !errors.Is(err, fence.ErrInvalid) {
				t.Errorf("%s, with a context that says it is nobody's: got %v", name, err)
			}
		}
		for _, values := range [][]string{{"fencing-token", "nonsense"}, {"fencing-token", `17;lock=%"a/b"`, "fencing-token", `17;lock=%"a/b"`}} {
			ctx := metadata.AppendToOutgoingContext(t.Context(), values...)
			if err := call(ctx, optional); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%s, with %q: got %v", name, values, err)
			}
		}
	}
}

func TestOtherErrorsPassThrough(t *testing.T) {
	c := dial(t, grpcfence.Server{})
	for name, call := range calls {
		if err := call(fence.NewContext(t.Context(), fence.Holding{Lock: "payments/other", Token: 17}), c); status.Code(err) != codes.Internal || errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: got %v, want what the handler returned", name, err)
		}
	}
}
