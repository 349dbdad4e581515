! The communication of a conjugate-gradient solver on a square grid of processes: in every step a
! sum over the row by recursive doubling, an exchange with the transposed process, and two sums.
!
! Usage: conjugate [OUTER [INNER]]. The number of processes must be a power of four.
program conjugate
  use, intrinsic :: iso_fortran_env, only: error_unit
  use mpi_f08
  implicit none
  integer, parameter :: cells = 128
  integer :: outer, inner, rank, nprocs, side, row, column, rounds, transposed
  integer :: iteration, step, round, peer
  type(MPI_Request) :: request
  type(MPI_Comm) :: rows
  double precision :: own(cells), other(cells), local, total
  ! What is not given stays as it is: reading ends at the slash.
  character(len=32) :: texts(3) = '/'

  outer = 15
  inner = 25
  call get_command_argument(1, texts(1))
  call get_command_argument(2, texts(2))
  read (texts, *) outer, inner
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, nprocs)
  side = nint(sqrt(dble(nprocs)))
  rounds = 0
  do while (2**rounds < side)
    rounds = rounds + 1
  end do
  if (side * side /= nprocs .or. 2**rounds /= side) then
    if (rank == 0) write (error_unit, '(a)') 'the number of processes must be a power of four'
    call MPI_Abort(MPI_COMM_WORLD, 2)
  end if
  row = rank / side
  column = mod(rank, side)
  transposed = column * side + row
  call MPI_Comm_split(MPI_COMM_WORLD, row, column, rows)
  own = rank
  do iteration = 1, outer
    do step = 1, inner
      do round = 0, rounds - 1
        peer = ieor(column, 2**round)
        call MPI_Irecv(other, cells, MPI_DOUBLE_PRECISION, peer, round, rows, request)
        call MPI_Send(own, cells, MPI_DOUBLE_PRECISION, peer, round, rows)
        call MPI_Wait(request, MPI_STATUS_IGNORE)
        own = 0.5d0 * (own + other)
      end do
      if (transposed /= rank) then
        call MPI_Irecv(other, cells, MPI_DOUBLE_PRECISION, transposed, 9, MPI_COMM_WORLD, request)
        call MPI_Send(own, cells, MPI_DOUBLE_PRECISION, transposed, 9, MPI_COMM_WORLD)
        call MPI_Wait(request, MPI_STATUS_IGNORE)
      end if
      local = sum(own)
      call MPI_Allreduce(local, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, rows)
    end do
    call MPI_Allreduce(local, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  end do
  if (rank == 0) print '(a,f14.4)', 'sum', total
  call MPI_Comm_free(rows)
  call MPI_Finalize()
end program conjugate
